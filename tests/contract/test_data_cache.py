"""The cache of data on a system: policies of a gateway, full disks, quotas, and what someone has changed."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import tarfile
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sublet.booking.model.request import Data, Request
from sublet.data.executables import Movers
from sublet.data.journeys import Journey, watch_entry
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.data.model.roads import Road
from sublet.data.placing import travel
from sublet.data.roads import Arrival, take_road
from sublet.kernel.errors import DataNotThere, DiskFull
from sublet.movers import http
from sublet.movers.http import HttpMover
from sublet.movers.port import SIMPLE, UNLIMITED, Policy, ResolvedFile
from sublet.movers.rsync import RsyncMover
from sublet.platforms.batch.far import fetcher, sources
from sublet.platforms.caching import CachePlacement, EntryPhase, describe_plan
from sublet.platforms.port import quietly
from sublet.platforms.slurm.platform import Slurm
from tests.contract.far_system import begin, content_of, ignore, make_programs, open_platform
from tests.contract.test_resolving import Catalogue
from tests.sites import mounted
from tests.web_source import WebSource, serve_source

pytestmark = pytest.mark.anyio
MIB = 1 << 20


@pytest.fixture(scope="module")
def source() -> Iterator[WebSource]:
    with serve_source("127.0.0.1") as server:
        yield server


@pytest.fixture
async def slurm(tmp_path: Path) -> AsyncIterator[Slurm]:
    platform = await open_platform(tmp_path, tmp_path / "far", cache="3MiB")
    yield platform
    await platform.close()


async def bring(slurm: Slurm, location: str, session: str = "s1", policy: Policy = UNLIMITED, **more: Any) -> Arrival:
    journey = await begin(slurm, session)
    arrival = await take_road(journey, Data("cube", SIMPLE, location, **more), HttpMover(policy, pause=0.01))
    assert arrival
    return arrival


async def test_people_of_a_gateway_get_nothing_from_private_addresses_on_any_road(
    slurm: Slurm, source: WebSource
) -> None:
    address = source.put("/private", os.urandom(MIB))
    with pytest.raises(DataNotThere, match="not a public address"):
        await bring(slurm, address, policy=Policy(public_only=True))
    assert not source.gets("/private")


async def test_the_program_that_fetches_checks_addresses_itself_also_after_a_redirection(
    slurm: Slurm, source: WebSource
) -> None:
    cache = await slurm.open_cache()
    await cache.want("data-1", "s1")
    link = FileLink("cube", source.put("/inner", b"x"))
    await cache.fetch("data-1", LinkedFiles([link]), public_only=True, largest=0)
    state = await watch_entry(cache, "data-1", quietly)
    assert (state.kind, state.why) == ("private", "127.0.0.1 is not a public address")
    assert not source.gets("/inner")


async def test_more_than_may_come_is_refused_there_too(slurm: Slurm, source: WebSource) -> None:
    with pytest.raises(DataNotThere, match="more than 1000 bytes"):
        await bring(slurm, source.put("/large", b"x" * 1001), policy=Policy(public_only=False, largest=1000))


async def test_a_full_disk_there_is_told_and_what_came_takes_no_room(tmp_path: Path, source: WebSource) -> None:
    small = tmp_path / "small"
    await asyncio.to_thread(small.mkdir)
    with mounted(small, "3m") as is_mounted:
        if not is_mounted:
            pytest.skip("no small file system can be mounted here")
        platform = await open_platform(tmp_path, small / "far")
        address = source.put("/full", os.urandom(8 * MIB))
        with pytest.raises(DiskFull):
            await bring(platform, address)
        platform.downloads = False
        platform._heed()
        with pytest.raises(DiskFull):
            await bring(platform, address)
        free = os.statvfs(small)
        assert free.f_bavail * free.f_frsize > 2 * MIB
        await platform.close()


async def test_a_cache_keeps_to_its_quota_and_never_removes_what_a_session_needs(
    slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    first = await bring(slurm, source.put("/q1", os.urandom(MIB)), "s1")
    second = await bring(slurm, source.put("/q2", os.urandom(MIB)), "s2")
    cache = await slurm.open_cache()
    await cache.leave("s1")
    third = await bring(slurm, source.put("/q3", os.urandom(2 * MIB)), "s3")
    assert not content_of(tmp_path, first).exists()
    assert content_of(tmp_path, second).exists()
    assert content_of(tmp_path, third).exists()


async def test_what_someone_changed_in_the_cache_is_brought_anew(
    slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    address = source.put("/tampered", b"right" * 1000)
    content = content_of(tmp_path, await bring(slurm, address))
    assert content.stat().st_mode & 0o222 == 0
    content.chmod(0o600)
    content.write_bytes(b"wrong" * 1000)
    later = content.stat().st_mtime + 5
    os.utime(content, (later, later))
    arrival = await bring(slurm, address, "s2")
    assert arrival.taken.road is Road.THERE
    assert content.read_bytes() == b"right" * 1000


@pytest.mark.parametrize("downloads", [True, False])
async def test_what_lacks_a_part_in_the_cache_is_brought_anew_however_old_it_seems(
    tmp_path: Path, source: WebSource, *, downloads: bool
) -> None:
    platform = await open_platform(tmp_path, tmp_path / "far", downloads=downloads)
    road = Road.THERE if downloads else Road.STREAMED
    address = source.put(f"/cut-{downloads}", b"whole" * 1000)
    arrival = await bring(platform, address)
    content = content_of(tmp_path, arrival)
    cache = await platform.open_cache()
    assert list(await cache.list_there([arrival.entry])) == [arrival.entry]
    content.chmod(0o600)
    os.truncate(content, 1000)
    os.utime(content, (1, 1))
    other = await open_platform(tmp_path, tmp_path / "far", downloads=downloads)  # which remembers nothing
    assert not await (await other.open_cache()).list_there([arrival.entry])
    assert (await bring(other, address, "s2")).taken.road is road
    assert content.read_bytes() == b"whole" * 1000
    await platform.close()
    await other.close()


async def test_a_link_needs_no_room_and_outlives_the_entry(slurm: Slurm, source: WebSource, tmp_path: Path) -> None:
    arrival = await bring(slurm, source.put("/linked", b"x" * 5000))
    cache = await slurm.open_cache()
    placements = [CachePlacement(arrival.entry, "data/cube/cube"), CachePlacement(arrival.entry, "work/own", True)]
    for _ in range(2):  # to do it again does no harm
        await cache.place("s1", placements)
    place = tmp_path / "far" / "incoming" / "s1"
    assert (place / "data/cube/cube").stat().st_ino == content_of(tmp_path, arrival).stat().st_ino
    (place / "work/own").write_bytes(b"y")
    assert content_of(tmp_path, arrival).read_bytes() == b"x" * 5000


@pytest.mark.parametrize("downloads", [True, False])
async def test_checksums_of_every_kind_are_checked_on_both_roads(
    tmp_path: Path, source: WebSource, downloads: bool
) -> None:
    platform = await open_platform(tmp_path, tmp_path / "far", downloads=downloads)
    content = os.urandom(5000)
    sums = {"md5": hashlib.md5(content).hexdigest(), "adler32": f"{zlib.adler32(content):08x}"}
    for kind, digits in sums.items():
        address = source.put(f"/{kind}/{downloads}", content)
        arrival = await bring(platform, address, checksum=f"{kind}:{digits}")
        assert arrival.taken.road is (Road.THERE if downloads else Road.STREAMED)
        with pytest.raises(DataNotThere, match=f"its checksum is {kind}:{digits}"):
            await bring(platform, address, checksum=f"{kind}:{'0' * len(digits)}")
    await platform.close()


async def bring_named(slurm: Slurm, *files: ResolvedFile) -> Arrival | None:
    data = Data("survey", SIMPLE, "catalogue:survey")
    movers = Movers([HttpMover(UNLIMITED, tries=2, pause=0.01), RsyncMover(UNLIMITED)])
    journey = Journey(await slurm.open_cache(), "far", "s1", "me", ignore)
    return await travel(journey, Request(None, data=(data,)), data, Catalogue(files), movers)


@pytest.mark.parametrize("downloads", [True, False])
async def test_what_has_only_a_name_takes_the_road_of_the_first_address_that_answers(
    tmp_path: Path, source: WebSource, downloads: bool
) -> None:
    platform = await open_platform(tmp_path, tmp_path / "far", downloads=downloads)
    contents = {name: os.urandom(5000) for name in ("a.fits", "deep/b c.fits")}
    files = []
    for name, content in contents.items():
        good = source.put(f"/named/{downloads}/{len(files)}", content)
        gone, dead = f"http://{source.address}/gone", "http://127.0.0.1:9/dead"
        md5 = f"md5:{hashlib.md5(content).hexdigest()}"
        replicas = [Data("", SIMPLE, place, size=5000, checksum=md5) for place in (gone, dead, good)]
        files.append(ResolvedFile(name, replicas))
    arrival = await bring_named(platform, *files)
    assert arrival
    assert arrival.taken.road is (Road.THERE if downloads else Road.STREAMED)
    place = content_of(tmp_path, arrival)
    assert {name: (place / name).read_bytes() for name in contents} == contents
    await platform.close()


@pytest.mark.parametrize("downloads", [True, False])
async def test_a_file_of_a_named_folder_that_is_not_what_its_catalogue_says_is_not_taken_for_it(
    tmp_path: Path, source: WebSource, downloads: bool
) -> None:
    platform = await open_platform(tmp_path, tmp_path / "far", downloads=downloads)
    files = []
    for number in range(2):
        content = os.urandom(5000)
        address = source.put(f"/damaged/{downloads}/{number}", content if number else bytes(5000))
        files.append(ResolvedFile(f"{number}.fits", [describe(address, content)]))
    assert await bring_named(platform, *files) is None  # here every address is tried, and told
    assert not list((tmp_path / "far" / "kept").glob("*/content"))
    await platform.close()


async def test_an_address_that_only_this_machine_reaches_gives_way_to_one_that_the_system_reaches(
    tmp_path: Path, source: WebSource
) -> None:
    platform = await open_platform(tmp_path, tmp_path / "far")
    content = os.urandom(5000)
    with serve_source("127.0.0.1") as near:
        (await platform.open_cache()).note_no_way(near.address, "far can't reach it")
        places = (near.put("/near", content), source.put("/elsewhere", content))
        arrival = await bring_named(platform, ResolvedFile("a.fits", [describe(place, content) for place in places]))
        assert arrival
        assert (arrival.taken.road, arrival.taken.source) == (Road.THERE, source.address)
        alone = await bring_named(platform, ResolvedFile("a.fits", [describe(places[0], content)]))
        assert alone
        assert (alone.taken.road, alone.taken.why) == (Road.STREAMED, "far can't reach it")
    await platform.close()


def describe(address: str, content: bytes) -> Data:
    return Data("", SIMPLE, address, size=len(content), checksum=f"md5:{hashlib.md5(content).hexdigest()}")


async def test_a_name_that_leads_to_what_no_link_reads_is_brought_here_first(slurm: Slurm, tmp_path: Path) -> None:
    assert await bring_named(slurm, ResolvedFile("a", [Data("", SIMPLE, "rsync://server/module/a")])) is None


async def test_a_system_is_asked_once_for_all_and_remembers_what_it_said(
    slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    arrival = await bring(slurm, source.put("/asked", b"x" * 5000))
    cache = await slurm.open_cache()
    cache.memory.forget()
    assert list(await cache.list_there([arrival.entry, "data-none"])) == [arrival.entry]
    await asyncio.to_thread(content_of(tmp_path, arrival).unlink)
    assert list(await cache.list_there([arrival.entry])) == [arrival.entry]  # nobody asked again
    cache.memory.forget()
    assert not await cache.list_there([arrival.entry])


async def test_what_is_kept_has_a_name_for_people(slurm: Slurm, source: WebSource) -> None:
    await bring(slurm, source.put("/named/cube.fits", b"x" * 5000))
    [kept] = await slurm.list_kept()
    assert (kept.label, kept.size, kept.users) == (f"cube.fits from {source.address}", 5000, ("s1",))


async def test_a_system_without_python_and_curl_gets_its_data_by_a_stream_and_that_is_told(
    tmp_path: Path, source: WebSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(make_programs(tmp_path / "bin", "curl")))
    platform = await open_platform(tmp_path, tmp_path / "far")
    content = os.urandom(5000)
    sha256 = f"sha256:{hashlib.sha256(content).hexdigest()}"
    arrival = await bring(platform, source.put("/bare", content), checksum=sha256)
    why = "it has no Python that could fetch; it has no curl"
    assert (arrival.taken.road, arrival.taken.why) == (Road.STREAMED, why)
    assert content_of(tmp_path, arrival).read_bytes() == content
    await platform.close()


async def test_a_source_that_falls_silent_is_asked_again_for_the_rest_here_and_on_the_system(
    tmp_path: Path, source: WebSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(MIB)
    monkeypatch.setattr(http, "WAITS", httpx2.Timeout(0.3))
    address = source.put("/silent/here", content, stalls_at=MIB // 2)
    await HttpMover(UNLIMITED, pause=0.01).bring(Data("cube", SIMPLE, address), tmp_path, quietly)
    assert (tmp_path / "here").read_bytes() == content
    monkeypatch.setattr(sources, "SILENCE", 0.3)
    address = source.put("/silent/there", content, stalls_at=MIB // 2)
    entry = tmp_path / "far" / "kept" / "data-1"
    for folder in (entry / "users", tmp_path / "far" / "incoming" / "s1"):
        folder.mkdir(parents=True)
    (entry / "users" / "s1").touch()
    files = LinkedFiles([FileLink("there", address, size=len(content))])
    (entry / "plan").write_text(json.dumps(describe_plan(files, public_only=False, largest=0, rate=0)))
    await asyncio.to_thread(fetcher.main, str(entry), "plan")
    assert (entry / "content").read_bytes() == content
    for name in ("here", "there"):
        first, second = [headers.get("Range") for headers in source.gets(f"/silent/{name}")]
        assert (first, bool(second)) == (None, True)


async def test_a_folder_may_have_the_longest_names_and_names_like_those_of_parts(
    slurm: Slurm, source: WebSource
) -> None:
    contents = {"n" * 255: b"long", "a": b"x" * MIB, "a.sublet-part": b"part", "a.sublet-mark": b"mark"}
    paths = dict(zip(contents, ("/0", "/1", "/2", "/3"), strict=True))
    links = [FileLink(name, source.put(paths[name], text), size=len(text)) for name, text in contents.items()]
    cache = await slurm.open_cache()
    await cache.want("data-1", "s1")
    await cache.fetch("data-1", LinkedFiles(links, is_folder=True), public_only=False, largest=0)
    assert (await watch_entry(cache, "data-1", quietly)).phase is EntryPhase.THERE
    content = Path(cache.find_content("data-1"))
    assert {name: (content / name).read_bytes() for name in os.listdir(content)} == contents
    assert not [name for name in os.listdir(content.parent) if name.startswith("part")]


async def test_two_sessions_that_want_one_file_at_once_have_it_streamed_once(tmp_path: Path, source: WebSource) -> None:
    platform = await open_platform(tmp_path, tmp_path / "far", downloads=False)
    address = source.put("/at-once", os.urandom(MIB), pace=0.02)
    arrivals = await asyncio.gather(*(bring(platform, address, session) for session in ("s1", "s2")))
    assert arrivals[0].entry == arrivals[1].entry
    assert len(source.gets("/at-once")) == 1
    await platform.close()


async def test_what_came_a_moment_ago_is_nobodys_to_bring(slurm: Slurm, source: WebSource) -> None:
    arrival = await bring(slurm, source.put("/just-now", b"x"))
    cache = await slurm.open_cache()
    assert await cache.claim(arrival.entry) is None
    assert (await cache.look(arrival.entry)).phase is EntryPhase.THERE


def pack(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name.replace("__", "/"))
            info.size, info.mode = len(content), 0o755
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize("downloads", [True, False])
async def test_an_archive_is_unpacked_on_the_system_once_and_only_its_content_is_needed_later(
    tmp_path: Path, source: WebSource, downloads: bool
) -> None:
    platform = await open_platform(tmp_path, tmp_path / "far", downloads=downloads)
    address = source.put(f"/{downloads}/cube.tar.gz", pack(a=b"1", deep__b=b"22"))
    arrival = await bring(platform, address, unpack=True)
    assert (arrival.files.is_folder, arrival.taken.road) == (True, Road.THERE if downloads else Road.STREAMED)
    place = content_of(tmp_path, arrival)
    assert {str(file.relative_to(place)): file.read_bytes() for file in place.rglob("*") if file.is_file()} == {
        "a": b"1",
        "deep/b": b"22",
    }
    cache = await platform.open_cache()
    archive = next(path for path in (tmp_path / "far" / "kept").iterdir() if path.name != arrival.entry)
    await cache.leave("s1")
    await platform.let_go(archive.name.replace("-", ":", 1))
    assert not archive.exists()
    again = await bring(platform, address, "s2", unpack=True)
    assert (again.entry, again.taken.road) == (arrival.entry, Road.CACHED)
    await cache.place("s2", [CachePlacement(again.entry, "data/cube")])
    assert (tmp_path / "far" / "incoming" / "s2" / "data" / "cube" / "deep" / "b").read_bytes() == b"22"
    assert len(source.gets(f"/{downloads}/cube.tar.gz")) == 1
    await platform.close()


async def test_an_archive_that_could_do_harm_there_is_refused_and_what_is_none_is_told(
    slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    for number, (content, why) in enumerate(
        ((pack(**{"..__evil": b"x"}), "can't be used here"), (b"no", "no archive"))
    ):
        with pytest.raises(DataNotThere, match=why):
            await bring(slurm, source.put(f"/harm/{number}", content), unpack=True)
    assert not list((tmp_path / "far" / "kept").glob("unpacked-*/part*"))
    assert not list((tmp_path / "far" / "kept").glob("unpacked-*/content"))


async def test_where_nothing_can_unpack_an_archive_it_is_brought_here_first(
    tmp_path: Path, source: WebSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(make_programs(tmp_path / "bin")))
    platform = await open_platform(tmp_path, tmp_path / "far")
    data = Data("cube", SIMPLE, source.put("/bare.tar", pack(a=b"1")), unpack=True)
    journey = Journey(await platform.open_cache(), "far", "s1", "me", ignore)
    mover = HttpMover(UNLIMITED)
    assert await travel(journey, Request(None, data=(data,)), data, mover, Movers([mover])) is None
    await platform.close()
