"""A system whose Python is too old brings folders of web servers by one curl, whole and of one version."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from sublet.booking.model.request import Data
from sublet.data.curl_plans import plan_curl
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.data.model.roads import Road
from sublet.data.roads import Arrival, take_road
from sublet.kernel.errors import DataNotThere
from sublet.movers.http import HttpMover
from sublet.movers.port import SIMPLE, UNLIMITED, Policy
from sublet.platforms.caching import NoWay
from sublet.platforms.slurm.platform import Slurm
from tests.contract.far_system import begin, content_of, find_words, make_programs, until
from tests.web_source import WebSource, serve_source

pytestmark = pytest.mark.anyio
SECRET = "not-for-others-9a2b"
FOLDER = Data("in", SIMPLE, "http://server/in/")


@pytest.fixture
def source() -> Iterator[WebSource]:
    with serve_source("127.0.0.1") as server:
        yield server


@dataclass
class FolderMover:
    """Knows the files of a folder on a web server, as WebDAV and S3 tell them."""

    files: LinkedFiles
    policy: Policy = UNLIMITED

    async def links(self, data: Data) -> LinkedFiles:
        """All of them."""
        return self.files

    def read(self, data: Data, link: FileLink, offset: int) -> AsyncIterator[bytes]:
        """One of them, here."""
        return HttpMover(self.policy).read(data, link, offset)


def put_all(source: WebSource, contents: Mapping[str, bytes], **how: object) -> LinkedFiles:
    """Have a server serve these; where they are."""
    headers = {"Authorization": f"Bearer {SECRET}"} if "authorization" in how else {}
    links = []
    for number, (path, content) in enumerate(contents.items()):
        url = source.put(f"/{number}", content, **how)  # type: ignore[arg-type]
        tag = f'"{hashlib.md5(content).hexdigest()}"'
        links.append(FileLink(path, url, headers, len(content), version=tag))
    return LinkedFiles(links, is_folder=True)


async def bring(slurm: Slurm, files: LinkedFiles, session: str = "s1") -> Arrival:
    arrival = await take_road(await begin(slurm, session), FOLDER, FolderMover(files))
    assert arrival
    return arrival


def read_all(place: Path) -> dict[str, bytes]:
    return {str(file.relative_to(place)): file.read_bytes() for file in place.rglob("*") if file.is_file()}


CONTENTS = {
    "large.bin": os.urandom(3 << 20),
    **{f"many/{number}.txt": str(number).encode() for number in range(40)},
    "odd names/a 'b' \"c\" \\d #1 {2} [3] ü.txt": b"odd",
    "-empty": b"",
    "deep/er/empty": b"",
}


async def test_a_folder_comes_whole_by_one_curl_and_nobody_sees_what_opens_it(
    old_slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    files = put_all(source, CONTENTS, authorization=f"Bearer {SECRET}", held_at=1 << 20)
    coming = asyncio.create_task(bring(old_slurm, files))
    await until(lambda: coming.done() or any((tmp_path / "far").glob("kept/*/part.file.pieces")))
    assert not coming.done(), "it is looked at while it works"
    assert not await asyncio.to_thread(find_words, SECRET)
    source.files["/0"].let_go.set()  # the others are smaller
    while not coming.done():
        assert not await asyncio.to_thread(find_words, SECRET)
        await asyncio.sleep(0.02)
    arrival = await coming
    assert (arrival.taken.road, arrival.taken.why) == (Road.THERE, ""), arrival.taken.why
    assert read_all(content_of(tmp_path, arrival)) == CONTENTS
    assert [len(source.gets(f"/{number}")) for number in range(len(CONTENTS))] == [1] * len(CONTENTS)
    assert source.gets("/0")[0]["User-Agent"] == "sublet"
    left = [file for file in (tmp_path / "far").rglob("*") if file.is_file()]
    assert not [file for file in left if SECRET.encode() in file.read_bytes()]
    assert not list(content_of(tmp_path, arrival).parent.glob("part*"))
    assert (await bring(old_slurm, files, "s2")).taken.road is Road.CACHED


async def test_what_broke_off_and_what_was_busy_is_asked_for_again_and_nothing_else(
    old_slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    contents = {name: os.urandom(1 << 20) for name in ("whole", "cut", "busy")}
    files = put_all(source, contents)
    source.put("/1", contents["cut"], cut_at=1 << 19)
    source.files["/2"].code = 503
    coming = asyncio.create_task(bring(old_slurm, files))
    await until(lambda: bool(source.gets("/2")))
    source.files["/2"].code = 200
    arrival = await coming
    assert arrival.taken.road is Road.THERE
    assert read_all(content_of(tmp_path, arrival)) == contents
    assert (len(source.gets("/0")), len(source.gets("/1"))) == (1, 2)


async def test_a_file_of_another_version_is_never_among_the_others(
    old_slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    files = put_all(source, {"a": b"x" * 5000, "b": b"y" * 5000})
    source.put("/1", b"z" * 5000)
    with pytest.raises(DataNotThere, match="changed since it was looked at"):
        await bring(old_slurm, files)
    assert not list((tmp_path / "far").glob("kept/*/part*")), "nothing is left that others would go on with"
    assert not list((tmp_path / "far").glob("kept/*/content"))


@pytest.mark.parametrize(("code", "why"), [(403, "the server answered 403"), (302, "leads on")])
async def test_what_a_server_refuses_curl_is_tried_from_here_and_that_is_told(
    old_slurm: Slurm, source: WebSource, tmp_path: Path, code: int, why: str
) -> None:
    files = put_all(source, {"a": b"x" * 5000, "b": b"y" * 5000})
    if code == 302:
        source.put("/1", b"", location=source.put("/led", b"y" * 5000))
        files = LinkedFiles([files.links[0], FileLink("b", files.links[1].url, size=5000)], is_folder=True)
        arrival = await bring(old_slurm, files)
        assert (arrival.taken.road, why in arrival.taken.why) == (Road.STREAMED, True), arrival.taken.why
        assert read_all(content_of(tmp_path, arrival)) == {"a": b"x" * 5000, "b": b"y" * 5000}
        return
    source.files["/1"].code = code
    with pytest.raises(DataNotThere, match=why):
        await bring(old_slurm, files)


async def test_a_session_that_is_over_stops_curl_with_all_its_files(
    old_slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    files = put_all(source, {"a": os.urandom(2 << 20), "b": os.urandom(2 << 20)}, held_at=1 << 20)
    cache = await old_slurm.open_cache()
    await cache.want("data-1", "s1")
    await cache.fetch_by("data-1", await plan_curl(FOLDER, files, UNLIMITED), largest=0)
    entry = tmp_path / "far" / "kept" / "data-1"
    pieces = entry / "part.file.pieces"
    await until(lambda: (pieces / "a").exists() and (pieces / "b").exists())  # side by side, as neither goes on
    await cache.leave("s1")
    await until(lambda: not [*entry.glob("claim"), *entry.glob("fetch.*"), *entry.glob("plan.*")])


async def test_a_system_without_awk_gets_a_folder_by_a_stream_and_that_is_told(
    slurm: Slurm, source: WebSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(make_programs(tmp_path / "bin", "awk", "mawk", "gawk")))
    arrival = await bring(slurm, put_all(source, {"a": b"x" * 5000}))
    assert arrival.taken.road is Road.STREAMED
    assert "it has no awk" in arrival.taken.why


@pytest.mark.parametrize(
    "links",
    [
        [FileLink("a\nb", "http://s/a", size=1)],
        [FileLink("../a", "http://s/a", size=1)],
        [FileLink("/a", "http://s/a", size=1)],
        [FileLink("a", "http://s/a")],
        [FileLink("a", "http://s/a", size=1), FileLink("b", "http://t/b", size=1)],
    ],
)
async def test_a_folder_that_can_not_be_told_to_curl_is_left_to_other_roads(links: list[FileLink]) -> None:
    with pytest.raises(NoWay):
        await plan_curl(FOLDER, LinkedFiles(links, is_folder=True), UNLIMITED)


async def test_for_people_of_a_gateway_each_file_comes_from_the_public_address_that_was_looked_up_here() -> None:
    links = [FileLink(name, f"https://9.9.9.9/{name}", size=1) for name in "ab"]
    plan = await plan_curl(FOLDER, LinkedFiles(links, is_folder=True), Policy())
    assert plan.facts.count(("option", 'resolve = "9.9.9.9:443:9.9.9.9"')) == 2
    private = LinkedFiles([FileLink("a", "http://127.0.0.1/a", size=1)], is_folder=True)
    with pytest.raises(DataNotThere, match="not a public address"):
        await plan_curl(FOLDER, private, Policy())
