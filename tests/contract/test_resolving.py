"""Data that has only a name comes from whichever of its addresses has it, whole and checked."""

import asyncio
import socket
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data import racing
from sublet.data.executables import Movers
from sublet.data.named_links import NamedLinks
from sublet.data.resolving import AT_ONCE, bring_files, find_files, look_up
from sublet.kernel.errors import DataNotThere
from sublet.movers import http
from sublet.movers.arrival import guess, missing
from sublet.movers.file import FileMover
from sublet.movers.http import HttpMover
from sublet.movers.port import SIMPLE, UNLIMITED, Policy, ResolvedFile
from tests.web_source import serve_source

pytestmark = pytest.mark.anyio
BODY = bytes(range(256)) * 4000
ADLER = f"adler32:{zlib.adler32(BODY):08x}"
MAP = Data("map", SIMPLE, "catalogue:ska:map.fits")


@dataclass
class Catalogue:
    """Knows where named data is."""

    files: Sequence[ResolvedFile]
    name: str = "catalogue"
    schemes: Sequence[str] = ("catalogue",)

    def check(self, data: Data) -> Sequence[Reason]:
        return []

    def estimate(self, data: Data) -> timedelta:
        return guess(data, 1000)

    async def resolve(self, data: Data) -> Sequence[ResolvedFile]:
        if not self.files:
            raise missing(data, "nobody knows it")
        return self.files


@dataclass
class Kept(FileMover):
    """Brings what the service keeps."""

    policy: Policy = UNLIMITED
    schemes: Sequence[str] = ("session", "upload", "ssh")


def at(*locations: str | Path, checksum: str = ADLER, size: int | None = len(BODY)) -> list[Data]:
    return [Data("", SIMPLE, str(location), size=size, checksum=checksum) for location in locations]


def movers(policy: Policy = UNLIMITED) -> Movers:
    return Movers([FileMover(policy), HttpMover(policy)])


def written(path: Path, content: bytes = BODY) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def seen(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


async def bring(files: Sequence[ResolvedFile], target: Path, data: Data = MAP) -> None:
    await bring_files(data, await find_files(movers(), Catalogue(files), data), target, lambda done, total: None)


async def test_the_next_address_is_tried_when_one_is_dead_wrong_or_short(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    short = written(tmp_path / "short", BODY[:-1])
    wrong = written(tmp_path / "wrong", b"x" + BODY[1:])
    good = written(tmp_path / "hashed" / "5f3a")
    await bring([ResolvedFile("map.fits", at(gone, short, wrong, good))], tmp_path / "there")
    assert seen(tmp_path / "there") == {"map.fits": BODY}
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["map.fits"]


async def test_when_every_address_fails_the_reason_names_them_all_and_why(tmp_path: Path) -> None:
    gone, short = tmp_path / "gone", written(tmp_path / "short", BODY[:-1])
    wrong = written(tmp_path / "wrong", b"x" + BODY[1:])
    replicas = [*at(gone, short, wrong), *at("gsiftp://old.example.org/map.fits")]
    with pytest.raises(DataNotThere) as failed:
        await bring([ResolvedFile("map.fits", replicas)], tmp_path / "there")
    message = str(failed.value)
    assert "none of its 3 addresses" in message
    for words in (str(gone), f"{len(BODY) - 1} bytes", "its checksum is adler32:", "gsiftp://old.example.org"):
        assert words in message
    assert not (tmp_path / "there" / "map.fits").exists()


async def test_many_files_come_under_their_own_paths_and_those_that_are_there_do_not_come_again(tmp_path: Path) -> None:
    one, two = written(tmp_path / "1"), written(tmp_path / "2")
    files = [ResolvedFile("a/one.fits", at(one)), ResolvedFile("two.fits", at(two))]
    await bring(files, tmp_path / "there")
    one.unlink()
    await bring(files, tmp_path / "there")
    assert seen(tmp_path / "there") == {"a/one.fits": BODY, "two.fits": BODY}


async def test_a_path_that_leads_out_of_the_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataNotThere, match="can't be used here"):
        await bring([ResolvedFile("../../.bashrc", at(written(tmp_path / "1")))], tmp_path / "there")


async def test_a_catalogue_can_not_name_what_is_kept_here() -> None:
    own = ResolvedFile("x", at("session:secret/out.txt", "upload:mine/x", "ssh://cluster/home/me/.ssh/id"))
    with pytest.raises(DataNotThere, match=r"nothing here brings session: .*brings upload: .*brings ssh: addresses"):
        await find_files(Movers([*movers().usual, Kept()]), Catalogue([own]), MAP)


async def test_a_folder_at_an_address_is_brought_as_it_is(tmp_path: Path) -> None:
    written(tmp_path / "tree" / "deep" / "a.txt")
    whole = ResolvedFile("", at(tmp_path / "tree", checksum="", size=None))
    for _ in range(2):  # again, as after a try that was cut off
        await bring([whole], tmp_path / "there")
    assert seen(tmp_path / "there") == {"deep/a.txt": BODY}


async def test_the_askers_own_checksum_counts_more_than_the_catalogues(tmp_path: Path) -> None:
    good = written(tmp_path / "good")
    asked = replace(MAP, checksum="md5:" + "0" * 32)
    with pytest.raises(DataNotThere, match="md5:"):
        await bring([ResolvedFile("map.fits", at(good))], tmp_path / "there", asked)


async def test_sizes_are_added_up_when_it_is_asked_for(tmp_path: Path) -> None:
    files = [ResolvedFile(name, at(written(tmp_path / name))) for name in ("a", "b")]
    assert await look_up(movers(), Catalogue(files), MAP) == (2 * len(BODY), [])
    unknown = ResolvedFile("", at(tmp_path / "a", checksum="", size=None))
    assert await look_up(movers(), Catalogue([unknown]), MAP) == (len(BODY), [])
    assert await look_up(movers(), Catalogue([]), MAP) == (None, [])


async def test_data_that_is_nowhere_where_it_may_be_brought_from_is_a_no_with_each_address() -> None:
    nowhere = ResolvedFile("map.fits", at("/etc/map.fits", "gsiftp://old.example.org/map.fits"))
    size, reasons = await look_up(movers(Policy()), Catalogue([nowhere]), MAP)
    assert size is None
    assert "Files of this machine are not allowed as data" in reasons[0].message
    assert "gsiftp: addresses" in reasons[0].message
    with pytest.raises(DataNotThere, match="no address that data can be fetched from"):
        await find_files(movers(Policy()), Catalogue([nowhere]), MAP)


async def test_of_several_addresses_those_that_answer_are_tried_first_and_one_that_hangs_costs_a_moment(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hanging, serve_source("127.0.0.1") as source:
        port = hanging.getsockname()[1]
        good = source.put("/map", BODY)
        replicas = at(f"http://127.0.0.1:{port}/map", "http://127.0.0.1:9/map", good)
        await bring([ResolvedFile("first.fits", at(good))], tmp_path / "before")  # no longer cold
        await bring([ResolvedFile("map.fits", replicas)], tmp_path / "there")
        hanging.settimeout(1)
        asked, _ = hanging.accept()
        assert asked.recv(4) == b"HEAD"
        with pytest.raises(TimeoutError):
            hanging.accept()  # nobody tried to have it from there
        asked.close()
    assert seen(tmp_path / "there") == {"map.fits": BODY}


async def test_a_host_that_hangs_is_waited_for_by_the_first_files_alone(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as hanging, serve_source("127.0.0.1") as source:
        dead = f"http://127.0.0.1:{hanging.getsockname()[1]}"
        files = [
            ResolvedFile(f"{number}.fits", at(f"{dead}/{number}", source.put(f"/{number}", BODY)))
            for number in range(30)
        ]
        await bring([ResolvedFile("first.fits", at(source.put("/first", BODY)))], tmp_path / "before")  # no longer cold
        await bring(files, tmp_path / "there")
        named = NamedLinks(movers(), Catalogue(files))
        linked = await named.links(MAP)
        assert all(link.url.startswith(f"http://{source.address}/") for link in linked.links)
        assert count_waiting(hanging) <= 2 * AT_ONCE, "those that were under way at the same time"
    assert len(seen(tmp_path / "there")) == 30


async def test_where_no_address_answers_in_a_moment_the_slow_one_brings_it_and_not_the_one_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "MOMENT", 0.3)
    monkeypatch.setattr(racing, "QUIET", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as hanging, serve_source("127.0.0.1") as source:
        dead = f"http://127.0.0.1:{hanging.getsockname()[1]}/map"
        slow = source.put("/map", BODY, answers_after=1.0)
        cut = source.put("/cut", BODY[:1000], answers_after=0.6)
        async with asyncio.timeout(50):  # whoever waits for the one that hangs waits for a minute
            await bring([ResolvedFile("map.fits", at(dead, cut, slow))], tmp_path / "there")
        assert seen(tmp_path / "there") == {"map.fits": BODY}
        assert len(source.gets("/map")) <= 2
        refused = source.put("/refused", b"", code=403, answers_after=0.6)
        with pytest.raises(
            DataNotThere, match=r"none of its 2 addresses: (?=.*/cut: it has 1000)(?=.*/refused: .*403)"
        ):
            await bring([ResolvedFile("map.fits", at(cut, refused))], tmp_path / "nowhere")
        assert seen(tmp_path / "nowhere") == {}


def count_waiting(server: socket.socket) -> int:
    """How many have connected."""
    server.settimeout(0.2)
    count = 0
    with suppress(TimeoutError):
        while True:
            server.accept()[0].close()
            count += 1
    return count
