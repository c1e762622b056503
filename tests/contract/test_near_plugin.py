"""Addresses that HTCondor jobs behind a spool name: brought to the cache of their system once, for all of them."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from sublet.annexes.job_addresses import JobAddresses
from sublet.annexes.split.bridge import PLACES, write_plugins
from sublet.annexes.split.far_kept import heed_notes
from sublet.booking.platforms.known import KnownPlatforms
from sublet.data.executables import Movers
from sublet.data.model.credentials import Credential
from sublet.movers.http import HttpMover
from sublet.movers.port import UNLIMITED
from sublet.platforms.htcondor.release import Release
from sublet.platforms.slurm.platform import Slurm
from sublet.reach.local import LocalReach
from tests.web_source import WebSource, serve_source

pytestmark = pytest.mark.anyio
MIB = 1 << 20
# HTCondor's own plug-in, as far as it matters here: it says what it was asked for, and brings what no cache knows.
PLAIN = """#!/bin/sh
[ "$1" = -classad ] && { printf 'PluginType = "FileTransfer"\\nSupportedMethods = "http,https,osdf"\\n'; exit 0; }
sed -n 's/.*Url = "\\([^"]*\\)".*/\\1/p' "$2" >>"${0%/*}/asked-plain"
for file in $(sed -n 's/.*LocalFileName = "\\([^"]*\\)".*/\\1/p' "$2"); do
    head -c 17M /dev/zero >"$file"
    echo "[ TransferFileName = \\"$file\\"; TransferSuccess = true ]" >>"$4"
done
"""


@pytest.fixture(scope="module")
def source() -> Iterator[WebSource]:
    with serve_source("127.0.0.1") as server:
        yield server


class NoCredentials:
    """A person who has none."""

    async def open(self, person: str) -> Sequence[Credential]:
        return ()


class Bridge:
    """A bridge's directory with its plug-ins, and the cache of a system."""

    def __init__(self, place: Path) -> None:
        self.directory, self.root = place / "bridge" / "0", place / "far"
        (self.root / "sessions" / "lease").mkdir(parents=True)
        for name in PLACES:
            (self.directory / name).mkdir(parents=True)
        self.plain = place / "libexec" / "curl_plugin"
        self.plain.parent.mkdir()
        self.plain.write_text(PLAIN)
        self.plain.chmod(0o700)
        write_plugins(self.directory, Release(place, place, place, self.plain.parent))

    def run(self, job: str, *urls: str) -> Path:
        """As a bridge's starter has the files of a job brought; the sandbox as the node unpacks it."""
        sandbox = self.directory / "execute" / job
        sandbox.mkdir()
        asked, told = sandbox.with_suffix(".in"), sandbox.with_suffix(".out")
        asked.write_text("".join(f'[ Url = "{url}"; LocalFileName = "{sandbox}/{n}" ]\n' for n, url in enumerate(urls)))
        subprocess.run([self.directory / "near_web", "-infile", asked, "-outfile", told], check=True, timeout=60)
        assert told.read_text().count("TransferSuccess = true") == len(urls)
        for file in sandbox.iterdir():
            assert file.stat().st_size < 500, "only a note travels"
        heed_notes(str(sandbox), str(self.root / "kept"))
        return sandbox

    def plain_asked(self) -> list[str]:
        """What was left to HTCondor's own plug-in."""
        told = self.plain.with_name("asked-plain")
        return told.read_text().split() if told.exists() else []


@asynccontextmanager
async def answering(bridge: Bridge, home: Path) -> AsyncIterator[Slurm]:
    """A service that looks at what bridges ask."""
    await asyncio.to_thread(home.mkdir)
    platform = Slurm(name="far", directory=str(bridge.root))
    platform.use(LocalReach("far"))
    await platform.open(home)
    known = KnownPlatforms(None, datetime.now, timedelta(1), {"far": platform})  # type: ignore[arg-type]
    addresses = JobAddresses(known, Movers([HttpMover(UNLIMITED)]), NoCredentials())
    session = SimpleNamespace(id="lease", person="me", offer=SimpleNamespace(platform="far"))

    async def look() -> None:
        while True:
            await addresses.look_after(bridge.directory.parent, session)  # type: ignore[arg-type]
            await asyncio.sleep(0.05)

    looking = asyncio.create_task(look())
    try:
        yield platform
    finally:
        looking.cancel()
        await platform.close()


async def test_jobs_of_a_person_have_one_file_fetched_once_and_again_when_it_changes(
    tmp_path: Path, source: WebSource
) -> None:
    bridge, content = Bridge(tmp_path), os.urandom(2 * MIB)
    address = source.put("/cube.fits", content, pace=0.005)
    signed = [source.put(f"/private.fits?X-Amz-Date={n}&X-Amz-Signature={n}", b"p" * MIB) for n in range(2)]
    async with answering(bridge, tmp_path / "home") as platform:
        jobs = [asyncio.to_thread(bridge.run, f"job{n}", address, signed[n % 2]) for n in range(3)]
        for sandbox in await asyncio.gather(*jobs):
            assert (sandbox / "0").read_bytes() == content
            assert (sandbox / "1").read_bytes() == b"p" * MIB
        assert len(source.gets("/cube.fits")) == 1
        fetched = [path for method, path, _ in source.asked if method == "GET" and path.startswith("/private")]
        assert len(fetched) == 1, "an address that is signed anew for each job is the same address"
        source.put("/cube.fits", b"another")
        sandbox = await asyncio.to_thread(bridge.run, "later", address)
        assert (sandbox / "0").read_bytes() == b"another"
        assert len(source.gets("/cube.fits")) == 2
        assert bridge.plain_asked() == []
        kept = {entry.label: entry.users for entry in await platform.list_kept()}
        assert kept[f"cube.fits from {source.address}"] == ("lease",), "its lease protects it"
        assert not list((bridge.directory / "asked").iterdir())


async def test_what_no_cache_knows_again_is_brought_by_htcondor_and_crosses_once(
    tmp_path: Path, source: WebSource
) -> None:
    bridge = Bridge(tmp_path)
    gone = f"http://{source.address}/gone"
    async with answering(bridge, tmp_path / "home") as platform:
        for job in ("first", "second"):
            sandbox = await asyncio.to_thread(bridge.run, job, "osdf:///ospool/cube.fits", gone)
            assert [(sandbox / name).stat().st_size for name in ("0", "1")] == [17 * MIB] * 2
        assert sorted(bridge.plain_asked()) == sorted(["osdf:///ospool/cube.fits", gone] * 2)
        assert len(await platform.list_kept()) == 1, "by its content, which is the same"


def test_without_a_service_htcondor_brings_it_as_ever(tmp_path: Path) -> None:
    bridge = Bridge(tmp_path)
    words = bridge.directory / "near_web"
    said = subprocess.run([words, "-classad"], capture_output=True, text=True, check=True).stdout
    assert '"http,https,osdf,subletkept,subletkeptdir"' in said
    (bridge.directory / "asked").rmdir()  # as on a bridge of an earlier service
    (tmp_path / "in").write_text(f'[ Url = "https://example.org/x"; LocalFileName = "{tmp_path}/x" ]\n')
    subprocess.run([words, "-infile", tmp_path / "in", "-outfile", tmp_path / "out"], check=True)
    assert (tmp_path / "x").stat().st_size == 17 * MIB
    assert bridge.plain_asked() == ["https://example.org/x"]
