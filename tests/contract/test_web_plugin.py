"""What HTCondor jobs name by addresses comes out of the cache of their system: fetched once, for jobs and sessions."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.annexes.pilots.bundle import far
from sublet.booking.model.request import Data
from sublet.data.journeys import Journey
from sublet.data.model.roads import Road
from sublet.data.roads import take_road
from sublet.movers.http import HttpMover
from sublet.movers.port import SIMPLE, UNLIMITED, Progress
from sublet.platforms.batch.fetching import PLUGIN, read_program
from sublet.platforms.port import quietly
from sublet.platforms.slurm.platform import Slurm
from sublet.reach.local import LocalReach
from tests.web_source import WebSource, serve_source

MIB = 1 << 20
PLAIN = """#!/bin/sh
echo "$*" >>"${0%/*}/asked-plain"
[ "$1" = -classad ] && { echo 'SupportedMethods = "http,https,file"'; exit 0; }
sed 's/^/plain: /' "$2" >"$4"
exit 1
"""


@pytest.fixture(scope="module")
def source() -> Iterator[WebSource]:
    with serve_source("127.0.0.1") as server:
        yield server


class Node:
    """A directory of a pilot, with the plug-in in it, beside a cache."""

    def __init__(self, place: Path) -> None:
        self.place, self.root = place / "pilot", place / "far"
        self.place.mkdir()
        (self.root / "sessions" / "lease").mkdir(parents=True)
        (self.place / "plain").write_text(PLAIN)
        (self.place / "fetch_web").write_bytes(far("fetch_web"))
        (self.place / "fetch_web.py").write_bytes(read_program(*PLUGIN))
        self.tell("lease")
        for name in ("plain", "fetch_web"):
            (self.place / name).chmod(0o700)

    def tell(self, session: str) -> None:
        """Whose the cache is."""
        (self.place / "web.values").write_text(f"{self.place}/plain\n{self.root}/kept\n{session}\n")

    def begin(self, job: str, *urls: str) -> subprocess.Popen[bytes]:
        """As HTCondor begins the plug-in for a job."""
        (self.place / job).mkdir()
        ads = [f'[ Url = "{url}"; LocalFileName = "{self.place}/{job}/{n}" ]\n' for n, url in enumerate(urls)]
        (self.place / f"{job}.in").write_text("".join(ads))
        words = [
            str(self.place / "fetch_web"),
            "-infile",
            f"{self.place}/{job}.in",
            "-outfile",
            f"{self.place}/{job}.out",
        ]
        return subprocess.Popen(words)

    def run(self, job: str, *urls: str) -> tuple[int, list[str]]:
        """Its exit code, and what it says of each file."""
        code = self.begin(job, *urls).wait(30)
        return code, (self.place / f"{job}.out").read_text().splitlines()

    def plain_asked(self) -> list[str]:
        """What HTCondor's own plug-in was asked for."""
        try:
            return (self.place / "asked-plain").read_text().splitlines()
        except FileNotFoundError:
            return []


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_jobs_that_start_at_once_have_one_file_fetched_once_each_as_its_own(node: Node, source: WebSource) -> None:
    content = os.urandom(3 * MIB)
    address = source.put("/jobs/cube.fits", content, pace=0.005)
    running = [node.begin(f"job{n}", address) for n in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    for n in range(3):
        file = node.place / f"job{n}" / "0"
        assert file.read_bytes() == content
        file.write_bytes(b"mine")  # what a job does with its file is its own
    assert len(source.gets("/jobs/cube.fits")) == 1
    code, ads = node.run("later", address)
    assert (code, node.plain_asked()) == (0, [])
    assert "TransferSuccess = true" in ads[0]
    assert f"TransferTotalBytes = {3 * MIB}" in ads[0]
    assert (node.place / "later" / "0").read_bytes() == content
    assert len(source.gets("/jobs/cube.fits")) == 1


def test_what_is_not_for_the_cache_is_left_to_htcondors_own_plug_in(node: Node, source: WebSource) -> None:
    address = source.put("/left/cube.fits", b"x" * 1000)
    others = (f"{address}?signature=1", f"http://{source.address}/gone", "file:///etc/hostname")
    code, ads = node.run("mixed", others[0], address, *others[1:])
    assert code == 1  # as the other one said
    assert "TransferSuccess = true" in ads[0]
    assert ads[0].count(address) == 1
    assert [line.partition('Url = "')[2].partition('"')[0] for line in ads[1:]] == list(others)
    node.tell("")  # nobody would protect what is kept
    assert node.run("alone", address)[0] == 1
    assert len(node.plain_asked()) == 2
    done = subprocess.run([node.place / "fetch_web", "-classad"], capture_output=True, text=True, check=True)
    assert "http,https,file" in done.stdout


def test_a_cache_that_others_could_change_is_not_used(node: Node, source: WebSource) -> None:
    (node.root / "kept").mkdir()
    (node.root / "kept").chmod(0o777)
    assert node.run("open", source.put("/open/cube.fits", b"x" * 1000))[0] == 1
    assert len(node.plain_asked()) == 1
    assert not list((node.root / "kept").iterdir())


@pytest.mark.anyio
async def test_jobs_and_sessions_share_what_either_has_fetched(node: Node, source: WebSource, tmp_path: Path) -> None:
    first, second = source.put("/one.fits", os.urandom(5000)), source.put("/two.fits", os.urandom(5000))
    platform = Slurm(name="far", directory=str(node.root))
    platform.use(LocalReach("far"))
    await asyncio.to_thread((tmp_path / "home").mkdir)
    await platform.open(tmp_path / "home")
    journey = Journey(await platform.open_cache(), "far", "s1", "me", ignore)
    arrival = await take_road(journey, Data("one", SIMPLE, first), HttpMover(UNLIMITED))
    assert arrival
    assert arrival.taken.road is Road.THERE
    assert (await asyncio.to_thread(node.run, "job", first, second))[0] == 0
    arrival = await take_road(journey, Data("two", SIMPLE, second), HttpMover(UNLIMITED))
    assert arrival
    assert arrival.taken.road is Road.CACHED
    assert [len(source.gets(path)) for path in ("/one.fits", "/two.fits")] == [1, 1]
    kept = {entry.label.partition(" ")[0]: entry.users for entry in await platform.list_kept()}
    assert kept == {"one.fits": ("lease", "s1"), "two.fits": ("lease", "s1")}
    await platform.close()


def ignore(what: str) -> Progress:
    return quietly


def test_it_needs_nothing_but_python(tmp_path: Path) -> None:
    (tmp_path / "plugin.py").write_bytes(read_program(*PLUGIN))
    done = subprocess.run([sys.executable, "-IS", tmp_path / "plugin.py"], capture_output=True, text=True)
    assert "IndexError" in done.stderr  # it was read whole, and only lacks what HTCondor says
