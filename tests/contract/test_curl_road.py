"""A system whose Python is too old brings files of web servers by its own curl, with the same care."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sublet.booking.model.request import Data
from sublet.data.curl_plans import describe_link_to_curl, plan_curl
from sublet.data.journeys import watch_entry
from sublet.data.model.credentials import Credential, CredentialKind
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.data.model.roads import Road
from sublet.kernel.errors import DataNotThere, DiskFull
from sublet.movers.port import SIMPLE, UNLIMITED, Policy
from sublet.platforms.caching import EntryPhase, NoWay
from sublet.platforms.port import quietly
from sublet.platforms.slurm.platform import Slurm
from tests.contract.far_system import content_of, find_words, open_platform, until
from tests.contract.test_data_cache import MIB, bring
from tests.sites import mounted
from tests.web_source import WebSource, serve_source

pytestmark = pytest.mark.anyio
SECRET = "not-for-others-7d1c"


@pytest.fixture(scope="module")
def source() -> Iterator[WebSource]:
    with serve_source("127.0.0.1") as server:
        yield server


async def test_what_opens_a_file_is_in_no_words_of_a_command_and_no_file_and_the_file_comes_once(
    old_slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    content = os.urandom(MIB)
    source.put("/closed", content, authorization=f"Bearer {SECRET}", held_at=MIB // 2)
    address = f"http://{source.address}/closed?signature={SECRET}"
    source.files[f"/closed?signature={SECRET}"] = source.files["/closed"]
    known = Credential(f"http://{source.address}/", CredentialKind.TOKEN, "", SECRET)
    policy = Policy(public_only=False, credentials=[known])
    coming = asyncio.create_task(bring(old_slurm, address, policy=policy))
    await until(lambda: coming.done() or any((tmp_path / "far").glob("kept/*/part.file.curl")))
    assert not coming.done(), "curl is looked at while it works"
    assert not await asyncio.to_thread(find_words, SECRET)
    source.files["/closed"].let_go.set()
    while not coming.done():
        assert not await asyncio.to_thread(find_words, SECRET)
        await asyncio.sleep(0.02)
    arrival = await coming
    assert (arrival.taken.road, arrival.taken.source, arrival.taken.why) == (Road.THERE, source.address, "")
    assert content_of(tmp_path, arrival).read_bytes() == content
    assert content_of(tmp_path, arrival).stat().st_mode & 0o777 == 0o400
    files = [file for file in (tmp_path / "far").rglob("*") if file.is_file()]
    assert not [file for file in files if SECRET.encode() in file.read_bytes()]
    assert (await bring(old_slurm, address, "s2", policy)).taken.road is Road.CACHED
    [asked] = source.gets(f"/closed?signature={SECRET}")
    assert (asked["User-Agent"], asked["Accept-Encoding"]) == ("sublet", "identity")
    assert not [name.name for name in content_of(tmp_path, arrival).parent.glob("part*")]


async def test_a_connection_that_is_cut_goes_on_where_it_was_by_the_same_version(
    old_slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    content = os.urandom(MIB)
    arrival = await bring(old_slurm, source.put("/cut", content, cut_at=MIB // 2))
    assert arrival.taken.road is Road.THERE
    assert content_of(tmp_path, arrival).read_bytes() == content
    first, second = source.gets("/cut")
    assert "Range" not in first
    assert (second["Range"], second["If-Range"]) == (f"bytes={MIB // 2}-", source.files["/cut"].etag)


async def test_a_file_that_changes_while_it_comes_is_brought_anew_and_never_joined_of_two(
    old_slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    old, new = os.urandom(MIB), os.urandom(MIB)
    arrival = await bring(old_slurm, source.put("/changing", old, cut_at=MIB // 2, changes=new))
    assert arrival.taken.road is Road.THERE
    assert content_of(tmp_path, arrival).read_bytes() == new


async def test_what_a_killed_try_left_is_gone_on_with_if_its_headers_show_the_version(
    old_slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    cache, content = await old_slurm.open_cache(), os.urandom(MIB)
    right = f'"{hashlib.md5(content).hexdigest()}"'
    for name, tag, span in (("right", right, "bytes=1000-"), ("other", '"other"', None)):
        address, entry = source.put(f"/killed/{name}", content), tmp_path / "far" / "kept" / f"data-{name}"
        await cache.want(f"data-{name}", "s1")
        (entry / "part.file.curl").write_bytes(content[:1000] if span else b"x" * 1000)
        (entry / "part.file.headers").write_text(f"HTTP/1.1 200 OK\r\nETag: {tag}\r\n\r\n")
        files = LinkedFiles([FileLink("cube", address, size=MIB, version=right)])
        await cache.fetch_by(f"data-{name}", await plan_curl(Data("cube", SIMPLE, ""), files, UNLIMITED), largest=0)
        assert (await watch_entry(cache, f"data-{name}", quietly)).phase is EntryPhase.CAME
        assert (entry / "part.file.sublet-part").read_bytes() == content
        assert [headers.get("Range") for headers in source.gets(f"/killed/{name}")] == [span]


async def test_a_session_that_is_over_stops_what_curl_brings_for_it(
    old_slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    cache, address = await old_slurm.open_cache(), source.put("/over", os.urandom(64 * MIB), pace=0.1)
    await cache.want("data-1", "s1")
    files = LinkedFiles([FileLink("cube", address, size=64 * MIB)])
    await cache.fetch_by("data-1", await plan_curl(Data("cube", SIMPLE, ""), files, UNLIMITED), largest=0)
    entry = tmp_path / "far" / "kept" / "data-1"
    await until(lambda: (entry / "part.file.curl").exists())
    await cache.leave("s1")
    await until(lambda: not [*entry.glob("claim"), *entry.glob("fetch.*"), *entry.glob("plan.*")])
    assert (await cache.look("data-1")).phase is EntryPhase.IDLE
    assert len(source.gets("/over")) == 1


async def test_less_than_was_promised_is_not_taken_for_the_whole(old_slurm: Slurm, source: WebSource) -> None:
    with pytest.raises(DataNotThere, match="1000 of 5000 bytes came"):
        await bring(old_slurm, source.put("/short", os.urandom(5000), given=1000))
    assert len(source.gets("/short")) == 1


async def test_more_than_may_come_is_refused(old_slurm: Slurm, source: WebSource, tmp_path: Path) -> None:
    cache, address = await old_slurm.open_cache(), source.put("/much", os.urandom(MIB))
    for number, (size, largest, why) in enumerate([(1000, 0, "more than the 1000 bytes"), (None, 999, "than 999 b")]):
        await cache.want(f"data-{number}", "s1")
        files = LinkedFiles([FileLink("cube", address, size=size)])
        plan = await plan_curl(Data("cube", SIMPLE, address), files, UNLIMITED)
        await cache.fetch_by(f"data-{number}", plan, largest=largest)
        state = await watch_entry(cache, f"data-{number}", quietly)
        assert (state.kind, why in state.why) == ("wrong", True), state
        assert not list((tmp_path / "far" / "kept" / f"data-{number}").glob("part*"))


async def test_a_checksum_is_compared_there(old_slurm: Slurm, source: WebSource, tmp_path: Path) -> None:
    content = os.urandom(5000)
    address, sha256 = source.put("/sum", content), hashlib.sha256(content).hexdigest()
    with pytest.raises(DataNotThere, match=f"its checksum is sha256:{sha256}"):
        await bring(old_slurm, address, checksum="sha256:" + "0" * 64)
    assert not list((tmp_path / "far").glob("kept/*/content"))
    assert (await bring(old_slurm, address, checksum=f"sha256:{sha256}")).taken.road is Road.THERE


async def test_what_the_server_refuses_is_tried_from_here_and_told_and_nothing_is_kept(
    old_slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    with pytest.raises(DataNotThere, match="the server answered 403"):
        await bring(old_slurm, source.put("/forbidden", b"x" * 5000, code=403))
    assert source.gets("/forbidden")[0]["User-Agent"] == "sublet"
    assert not list((tmp_path / "far").glob("kept/*/content"))


async def test_a_server_that_is_busy_is_asked_again(old_slurm: Slurm, source: WebSource, tmp_path: Path) -> None:
    address = source.put("/busy", b"x" * 5000, code=503)
    coming = asyncio.create_task(bring(old_slurm, address))
    await until(lambda: bool(source.gets("/busy")))
    source.files["/busy"].code = 200
    arrival = await coming
    assert arrival.taken.road is Road.THERE
    assert content_of(tmp_path, arrival).read_bytes() == b"x" * 5000


async def test_an_address_that_leads_on_is_followed_from_here_alone_and_that_is_told(
    old_slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    content = os.urandom(5000)
    address = source.put("/leads", b"", location=source.put("/led", content))
    arrival = await bring(old_slurm, address)
    assert (arrival.taken.road, "leads on" in arrival.taken.why) == (Road.STREAMED, True), arrival.taken.why
    assert content_of(tmp_path, arrival).read_bytes() == content
    assert [headers["User-Agent"] for headers in source.gets("/led")] != ["sublet"]


async def test_what_can_not_be_reached_is_told(old_slurm: Slurm) -> None:
    cache = await old_slurm.open_cache()
    await cache.want("data-1", "s1")
    files = LinkedFiles([FileLink("cube", "http://127.0.0.1:9/cube")])
    await cache.fetch_by("data-1", await plan_curl(Data("cube", SIMPLE, ""), files, UNLIMITED), largest=0)
    state = await watch_entry(cache, "data-1", quietly)
    assert (state.kind, "127.0.0.1" in state.why) == ("unreachable", True), state


async def test_a_full_disk_is_told_and_what_came_takes_no_room(
    tmp_path: Path, source: WebSource, old_programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = tmp_path / "small"
    await asyncio.to_thread(small.mkdir)
    with mounted(small, "3m") as is_mounted:
        if not is_mounted:
            pytest.skip("no small file system can be mounted here")
        monkeypatch.setenv("PATH", str(old_programs))
        platform = await open_platform(tmp_path, small / "far")
        with pytest.raises(DiskFull):
            await bring(platform, source.put("/full", os.urandom(8 * MIB)))
        free = os.statvfs(small)
        assert free.f_bavail * free.f_frsize > 2 * MIB
        await platform.close()


async def test_for_people_of_a_gateway_curl_connects_to_the_public_address_that_was_looked_up_here() -> None:
    data, public = Data("cube", SIMPLE, ""), Policy()
    with pytest.raises(DataNotThere, match="not a public address"):
        await plan_curl(data, LinkedFiles([FileLink("cube", "http://127.0.0.1/cube")]), public)
    plan = await plan_curl(data, LinkedFiles([FileLink("cube", "https://9.9.9.9/cube")]), public)
    assert ("option", 'resolve = "9.9.9.9:443:9.9.9.9"') in plan.facts
    assert ("public", "yes") in plan.facts


@pytest.mark.parametrize(
    ("url", "headers"),
    [
        ("http://user:word@server/cube", {}),
        ("http://server./cube", {}),
        ("http://ser%76er/cube", {}),
        ("http://other\\@server/cube", {}),
        ("http://server/a/../cube", {}),
        ("http://server/a/%2E%2e/cube", {}),
        ("http://server/with space", {}),
        ("http://server/ü", {}),
        ("http://server/cube", {"Authorization": "Bearer a\nurl = other"}),
        ("http://server/cube", {"@file": "x"}),
    ],
)
def test_what_curl_might_read_otherwise_is_left_to_other_roads(url: str, headers: Mapping[str, str]) -> None:
    with pytest.raises(NoWay, match="can't be told to curl"):
        describe_link_to_curl(FileLink("cube", url, headers))


def test_quotes_and_backslashes_are_what_they_are_for_curl() -> None:
    [url, *headers] = describe_link_to_curl(FileLink("cube", 'http://s/a[1]{2}\\"?x="#top', {"X-Key": 'a\\"b'}))
    assert url == 'url = "http://s/a[1]{2}\\\\\\"?x=\\""'
    assert headers[-1] == 'header = "X-Key: a\\\\\\"b"'
