"""The cache of this machine: data from elsewhere is brought once, shared by sessions, and never changed by them."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import io
import json
import os
import stat
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.loop import steps
from sublet.booking.model.phases import Phase
from sublet.booking.model.request import Data
from sublet.booking.model.session import EndKind
from sublet.data.model.links import FileLink, LinkedFiles, name_entry
from sublet.data.model.roads import Road
from sublet.data.roads import Arrival, Journey, take_road
from sublet.kernel.errors import DataNotThere, DiskFull, PlatformRefused
from sublet.movers.http import HttpMover
from sublet.movers.port import SIMPLE, UNLIMITED, Progress
from sublet.platforms.caching import CachePlacement, EntryPhase
from sublet.platforms.local import cache as cache_module
from sublet.platforms.local.cache import LocalCache
from sublet.platforms.port import quietly
from sublet.service import Service
from tests.contract.services import ME, ask, over, serving
from tests.sites import mounted
from tests.web_source import WebSource, serve_source

pytestmark = pytest.mark.anyio
MIB = 1 << 20
NAMED = {"name": "cube"}  # below data/, to be read alone
SUM = ["sh", "-c", "cat data/*/* | sha256sum"]


@pytest.fixture(scope="module")
def source() -> Iterator[WebSource]:
    with serve_source("127.0.0.1") as server:
        yield server


@pytest.fixture
def cache(tmp_path: Path) -> LocalCache:
    return make_cache(tmp_path / "home")


def make_cache(home: Path, quota: int = 3 * MIB) -> LocalCache:
    home.mkdir(parents=True, exist_ok=True)
    return LocalCache("here", home, quota, True, lambda key: not (home / "sessions" / key).is_dir())


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    async with serving(tmp_path / "service", platforms={"here": {"kind": "local"}}) as opened:
        yield opened


def ignore(what: str) -> Progress:
    return quietly


async def bring(cache: LocalCache, location: str, session: str = "s1", **more: Any) -> Arrival:
    (cache.home / "sessions" / session).mkdir(parents=True, exist_ok=True)
    journey = Journey(cache, "here", session, "me", ignore)
    arrival = await take_road(journey, Data("cube", SIMPLE, location, **more), HttpMover(UNLIMITED, pause=0.01))
    assert arrival
    return arrival


def content_of(cache: LocalCache, arrival: Arrival) -> Path:
    return cache.home / "kept" / arrival.entry / "content"


async def test_a_second_session_moves_nothing_and_its_offer_says_so(service: Service, source: WebSource) -> None:
    content = os.urandom(40 * MIB)
    address = source.put("/twice/cube.fits", content)
    offers, staged = [], []
    for _ in range(2):
        offerset = await ask(service, run=SUM, data=NAMED | {"location": address}, time="1m")
        offers.append(offerset.offers[0].offer)
        session = await over(service, (await service.sessions.accept(offerset.offers[0].id, ME)).id)
        assert session.phase is Phase.COMPLETED, session.end
        assert session.staged is not None
        staged.append(session.staged)
        out = await service.platforms.get("here").output(session.id, "stdout", 0, 100)
        assert out.decode().split()[0] == hashlib.sha256(content).hexdigest()
    first, second = offers
    assert len(source.gets("/twice/cube.fits")) == 1
    assert (first.staging.there, second.staging.there) == ((), ("cube.fits",))
    assert second.prepare < first.prepare
    assert staged[1] <= staged[0]
    assert second.staging.time.high <= staged[1]  # it said that nothing has to be moved, and nothing was
    _, sentences = await service.explanations.explain(session.id, ME)
    assert any("was in the cache of here" in sentence for sentence in sentences), sentences
    assert any("cube.fits was there already" in sentence for sentence in sentences), sentences


async def test_data_that_can_not_be_had_here_is_the_reason_of_its_session(service: Service, source: WebSource) -> None:
    address = source.put("/shut/cube.fits", b"x", code=403)
    offerset = await ask(service, run=SUM, data=NAMED | {"location": address}, time="1m")
    session = await over(service, (await service.sessions.accept(offerset.offers[0].id, ME)).id)
    assert session.end
    assert (session.phase, session.end.kind) == (Phase.FAILED, EndKind.STAGING_FAILED)
    assert "403 Forbidden" in session.end.detail


async def test_what_a_session_writes_never_reaches_the_cache(service: Service, source: WebSource) -> None:
    address = source.put("/written/cube.fits", b"right" * 1000)
    write = "for file in data/*/* ../data/*/*; do echo wrong > $file; done; true"
    data = NAMED | {"location": address}
    offerset = await ask(service, run=["sh", "-c", write], data=data, time="1m")
    await over(service, (await service.sessions.accept(offerset.offers[0].id, ME)).id)
    again = await ask(service, run=["sh", "-c", "cat data/*/*"], data=data, time="1m")
    session = await over(service, (await service.sessions.accept(again.offers[0].id, ME)).id)
    out = await service.platforms.get("here").output(session.id, "stdout", 0, 10000)
    assert out == b"right" * 1000


async def test_data_that_may_be_changed_is_a_copy_and_as_it_was_brought_no_result(
    service: Service, source: WebSource
) -> None:
    address = source.put("/own/params.txt", b"one\n")
    document = {
        "run": ["sh", "-c", "echo two >> in/params.txt; cp in/params.txt out.txt"],
        "data": [
            {"location": address, "path": "in/params.txt", "writable": True},
            {"location": source.put("/own/left.txt", b"x"), "path": "left.txt", "writable": True},
        ],
        "time": "1m",
    }
    asked = await service.asking.read(json.dumps(document).encode(), "application/json", ME)
    offerset = await service.asking.ask(ME, asked)
    session = await over(service, (await service.sessions.accept(offerset.offers[0].id, ME)).id)
    assert session.phase is Phase.COMPLETED, session.end
    results = await service.platforms.get("here").results(session.id)
    assert {file.path for file in results.files} == {"in/params.txt", "out.txt"}  # it was changed, so it is a result


async def test_entries_are_read_only_linked_and_outlive_nothing_that_a_session_has(
    cache: LocalCache, source: WebSource
) -> None:
    arrival = await bring(cache, source.put("/linked", b"x" * 5000))
    assert arrival.taken.road is Road.HERE
    content = content_of(cache, arrival)
    assert stat.S_IMODE(content.stat().st_mode) == 0o444
    for _ in range(2):  # to do it again does no harm
        await cache.place("s1", [CachePlacement(arrival.entry, "data/cube/cube")])
        await cache.place("s1", [CachePlacement(arrival.entry, "work/own", is_writable=True)])
    session = cache.home / "sessions" / "s1"
    (session / "work/own").write_bytes(b"y")
    assert content.read_bytes() == b"x" * 5000
    await cache.leave("s1")
    assert await cache.let_go([], idle=timedelta(0)) == [f"data:{arrival.entry.partition('-')[2]}"]
    assert not content.exists()
    assert (session / "data/cube/cube").read_bytes() == b"x" * 5000


async def test_it_keeps_to_its_quota_and_never_removes_what_a_session_needs(
    cache: LocalCache, source: WebSource
) -> None:
    first = await bring(cache, source.put("/q1", os.urandom(MIB)), "s1")
    second = await bring(cache, source.put("/q2", os.urandom(MIB)), "s2")
    await cache.leave("s1")
    third = await bring(cache, source.put("/q3", os.urandom(2 * MIB)), "s3")
    assert [content_of(cache, each).exists() for each in (first, second, third)] == [False, True, True]
    assert {kept.label for kept in await cache.list_kept()} == {
        f"q2 from {source.address}",
        f"q3 from {source.address}",
    }


async def test_what_someone_changed_is_brought_anew(cache: LocalCache, source: WebSource) -> None:
    address = source.put("/tampered", b"right" * 1000)
    arrival = await bring(cache, address)
    content = content_of(cache, arrival)
    content.chmod(0o600)
    content.write_bytes(b"wrong" * 1000)
    assert not await cache.list_there([arrival.entry])
    assert (await bring(cache, address, "s2")).taken.road is Road.HERE
    assert content.read_bytes() == b"right" * 1000
    assert list(await cache.list_there([arrival.entry])) == [arrival.entry]


async def test_a_wrong_checksum_is_told_and_nothing_is_kept(cache: LocalCache, source: WebSource) -> None:
    address = source.put("/sum", b"x" * 5000)
    with pytest.raises(DataNotThere, match="its checksum is sha256:"):
        await bring(cache, address, checksum=f"sha256:{'0' * 64}")
    assert not await cache.list_kept()
    assert not list(cache.home.glob("kept/*/part*"))


async def test_two_processes_that_want_one_file_bring_it_once(cache: LocalCache, source: WebSource) -> None:
    address = source.put("/both", os.urandom(4 * MIB), pace=0.01)
    other = make_cache(cache.home)
    arrivals = await asyncio.gather(bring(cache, address, "s1"), bring(other, address, "s2"))
    assert len(source.gets("/both")) == 1
    assert arrivals[0].entry == arrivals[1].entry


async def test_what_a_dead_process_began_is_gone_on_with(cache: LocalCache, source: WebSource) -> None:
    content = os.urandom(4 * MIB)
    address = source.put("/dead", content)
    data = Data("cube", SIMPLE, address)
    entry = name_entry(await HttpMover(UNLIMITED).links(data), "me", "")
    await cache.want(entry, "s1")
    assert await cache.claim(entry) == {}
    await cache.write(entry, "", 0, _pieces(content[: 3 * MIB]))
    assert await cache.claim(entry) is None
    folder = str(cache.home / "kept" / entry)
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", CLAIMED, folder], check=True)
    before = source.sent
    arrival = await bring(cache, address, "s2")
    assert content_of(cache, arrival).read_bytes() == content
    assert source.sent - before == MIB  # the first three were there


CLAIMED = """
import sys
from pathlib import Path
from sublet.platforms.claims import ServiceProcess
Path(sys.argv[1], "claim").write_text(str(ServiceProcess.here()))
"""


async def test_folders_come_as_archives_and_in_pieces_with_what_is_executable(cache: LocalCache) -> None:
    files = LinkedFiles(
        [FileLink("run.sh", "http://x/run.sh", size=3, is_executable=True), FileLink("a/b", "", size=1)], True
    )
    await cache.want("data-folder", "s1")
    assert await cache.claim("data-folder") == {}
    assert await cache.claim("data-folder") is None  # somebody does already
    assert (await cache.look("data-folder")).phase is EntryPhase.BUSY
    await cache.unpack("data-folder", _tar({"run.sh": b"ls\n"}))
    assert await cache.measure("data-folder") == {"run.sh": 3}
    await cache.write("data-folder", "a/b", 0, _pieces(b"x"))
    await cache.publish("data-folder", files)
    await cache.place("s1", [CachePlacement("data-folder", "data/folder")])
    folder = cache.home / "sessions" / "s1" / "data" / "folder"
    assert os.access(folder / "run.sh", os.X_OK)
    assert (folder / "a/b").read_bytes() == b"x"


async def _pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def _tar(contents: dict[str, bytes]) -> AsyncIterator[bytes]:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for name, content in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    yield made.getvalue()


async def test_a_name_that_leads_elsewhere_is_refused(cache: LocalCache) -> None:
    await cache.want("data-bad", "s1")
    with pytest.raises(PlatformRefused):
        await cache.write("data-bad", "../../out", 0, _pieces(b"x"))
    with pytest.raises(PlatformRefused):
        await cache.want("../other", "s1")


async def test_a_full_disk_is_told_and_what_came_takes_no_room(tmp_path: Path, source: WebSource) -> None:
    small = tmp_path / "small"
    await asyncio.to_thread(small.mkdir)
    with mounted(small, "3m") as is_mounted:
        if not is_mounted:
            pytest.skip("no small file system can be mounted here")
        cache = make_cache(small / "home", quota=0)
        with pytest.raises(DiskFull, match="are free here"):
            await bring(cache, source.put("/full", os.urandom(8 * MIB)))
        free = os.statvfs(small)
        assert free.f_bavail * free.f_frsize > 2 * MIB


async def test_a_quota_of_the_file_system_is_told_as_such(
    service: Service, source: WebSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **more: object) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    for module, name in ((cache_module, "_write_all"), (steps, "stage")):
        monkeypatch.setattr(module, name, refuse)
        offerset = await ask(service, data=source.put(f"/{name}.fits", os.urandom(3_000_000)), time="1m")
        session = await over(service, (await service.sessions.accept(offerset.offers[0].id, ME)).id)
        assert session.end
        assert (session.end.kind, "Disk quota exceeded" in session.end.detail) == (EndKind.DISK_FULL, True), session.end
        monkeypatch.undo()
