"""Every mover brings what was asked for, whole and checked, or says why not."""

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.request import Data
from sublet.kernel.errors import DataNotThere
from sublet.movers.file import FileMover
from sublet.movers.http import HttpMover
from sublet.movers.port import UNLIMITED, Mover, Policy
from sublet.movers.registry import GROUP, survey_movers
from tests import threads

pytestmark = pytest.mark.anyio
BODY = bytes(range(256)) * 20_000  # 5 MB
SHA = "sha256:" + hashlib.sha256(BODY).hexdigest()


def data(location: str, **fields: Any) -> Data:
    return Data("cube", "simple-data-resource", location, **fields)


class Server(ThreadingHTTPServer):
    """A web server that can misbehave: each handler gets the number of the request."""

    daemon_threads = True

    def __init__(self, answer: Callable[[BaseHTTPRequestHandler, int], None]) -> None:
        self.asked: list[dict[str, str]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(handler) -> None:  # noqa: N805
                self.asked.append(dict(handler.headers))
                answer(handler, len(self.asked))

            def log_message(handler, *words: object) -> None:  # noqa: N805
                return

        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler, int], None]) -> Iterator[Server]:
    server = Server(answer)
    with threads.serving(server):
        yield server


def send(
    handler: BaseHTTPRequestHandler,
    body: bytes = BODY,
    *,
    tag: str = '"one"',
    ranges: bool = True,
    breaks: int | None = None,
) -> None:
    """Answer with the body, or the part of it that was asked for; break off after so many bytes."""
    start = 0
    wanted = handler.headers.get("Range")
    if ranges and wanted and handler.headers.get("If-Range") == tag:
        start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
    else:
        handler.send_response(200)
    handler.send_header("Content-Length", str(len(body) - start))
    handler.send_header("ETag", tag)
    handler.end_headers()
    handler.wfile.write(body[start:] if breaks is None else body[start : start + breaks])
    handler.close_connection = True


def nothing(done: int, total: int | None) -> None:
    return


async def test_every_mover_is_found_by_its_entry_point() -> None:
    movers = survey_movers(Policy())
    assert not movers.broken
    assert {mover.name for mover in movers.found} >= {"file", "http"}


@dataclass
class ForeignMover:
    """A mover of another package."""

    policy: Policy


@dataclass
class OldMover:
    """A mover that is made without a policy, though it could take something else."""

    tries: int = 5


async def test_every_mover_is_made_with_the_policy_whoever_wrote_it() -> None:
    policy = Policy(largest=1000, file_roots=[Path("/data")])
    movers = survey_movers(policy, _points(*BUILT_IN, f"{__name__}:ForeignMover"))
    assert not movers.broken
    assert [mover.policy for mover in movers.found] == [policy] * 5  # type: ignore[attr-defined]


async def test_a_mover_that_takes_no_policy_is_broken_and_the_others_go_on() -> None:
    movers = survey_movers(UNLIMITED, _points(f"{__name__}:OldMover", f"{__name__}:ForeignMover"))
    assert [type(mover) for mover in movers.found] == [ForeignMover]
    assert "takes no `policy`" in movers.broken["OldMover"]


BUILT_IN = (
    "sublet.movers.app:AppMover",
    "sublet.movers.file:FileMover",
    "sublet.movers.http:HttpMover",
    "sublet.movers.oci:OciMover",
)


def _points(*values: str) -> list[EntryPoint]:
    return [EntryPoint(value.partition(":")[2], value, GROUP) for value in values]


@pytest.mark.parametrize("kind", ["file", "http"])
async def test_a_file_is_brought_whole_under_its_own_name(kind: str, tmp_path: Path) -> None:
    source, target = tmp_path / "cube one.fits", tmp_path / "there"
    source.write_bytes(BODY)
    target.mkdir()
    seen: list[tuple[int, int | None]] = []
    with serving(lambda handler, _: send(handler)) as server:
        mover: Mover = FileMover(UNLIMITED) if kind == "file" else HttpMover(UNLIMITED)
        location = source.as_uri() if kind == "file" else f"{server.url}/a/cube%20one.fits?version=2"
        item = data(location, size=len(BODY), checksum=SHA)
        assert not mover.check(item)
        await mover.bring(item, target, lambda done, total: seen.append((done, total)))
    assert [path.name for path in target.iterdir()] == ["cube one.fits"]
    assert (target / "cube one.fits").read_bytes() == BODY
    assert seen[-1] == (len(BODY), len(BODY))


@pytest.mark.parametrize("kind", ["file", "http"])
@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"checksum": "sha256:" + "0" * 64}, [SHA, "sha256:0000"]),
        ({"size": 7}, [str(len(BODY)), "7 were expected"]),
    ],
)
async def test_what_differs_from_what_was_asked_is_not_there(
    kind: str, fields: dict[str, Any], words: list[str], tmp_path: Path
) -> None:
    source, target = tmp_path / "cube", tmp_path / "there"
    source.write_bytes(BODY)
    target.mkdir()
    with serving(lambda handler, _: send(handler)) as server:
        mover: Mover = FileMover(UNLIMITED) if kind == "file" else HttpMover(UNLIMITED)
        location = str(source) if kind == "file" else f"{server.url}/cube"
        with pytest.raises(DataNotThere) as caught:
            await mover.bring(data(location, **fields), target, nothing)
    assert all(word in caught.value.message for word in words)
    assert not (target / "cube").exists()


@pytest.mark.parametrize("checksum", ["sha256:123", "crc32:12345678", "0" * 64, "sha256:" + "g" * 64])
@pytest.mark.parametrize("mover", [FileMover(UNLIMITED), HttpMover(UNLIMITED)], ids=["file", "http"])
async def test_a_checksum_that_can_not_be_checked_is_a_reason(mover: Mover, checksum: str) -> None:
    location = "/tmp/x" if mover.name == "file" else "https://example.org/x"
    (reason,) = mover.check(data(location, checksum=checksum))
    assert reason.field == "data[cube].checksum"
    assert "sha256" in reason.nearest


@pytest.mark.parametrize("mover", [FileMover(UNLIMITED), HttpMover(UNLIMITED)], ids=["file", "http"])
async def test_the_askers_own_estimate_comes_first(mover: Mover) -> None:
    assert mover.estimate(data("/x", prepare=timedelta(minutes=7))) == timedelta(minutes=7)
    assert mover.estimate(data("/x", size=10**12)) > mover.estimate(data("/x", size=10**10)) > timedelta(0)
    assert mover.estimate(data("/x")) > timedelta(0)


async def test_a_download_that_breaks_goes_on_where_it_stopped(tmp_path: Path) -> None:
    with serving(lambda handler, number: send(handler, breaks=2_000_000 if number < 3 else None)) as server:
        await HttpMover(UNLIMITED, pause=0).bring(data(f"{server.url}/cube", checksum=SHA), tmp_path, nothing)
        starts = [asked.get("Range") for asked in server.asked]
    assert starts == [None, "bytes=2000000-", "bytes=4000000-"]
    assert os.listdir(tmp_path) == ["cube"]


async def test_a_later_try_goes_on_with_what_an_earlier_one_left(tmp_path: Path) -> None:
    with serving(lambda handler, number: send(handler, breaks=1_000_000 if number < 2 else None)) as server:
        item = data(f"{server.url}/cube", checksum=SHA)
        with pytest.raises(DataNotThere, match="1000000 bytes so far"):
            await HttpMover(UNLIMITED, tries=1).bring(item, tmp_path, nothing)
        await HttpMover(UNLIMITED, tries=1).bring(item, tmp_path, nothing)
        assert server.asked[1]["Range"] == "bytes=1000000-"
        await HttpMover(UNLIMITED).bring(item, tmp_path, nothing)
        assert len(server.asked) == 2, "what is there is not brought again"


async def test_a_server_that_knows_no_ranges_sends_it_all_again(tmp_path: Path) -> None:
    def answer(handler: BaseHTTPRequestHandler, number: int) -> None:
        send(handler, ranges=False, breaks=2_000_000 if number == 1 else None)

    with serving(answer) as server:
        await HttpMover(UNLIMITED, pause=0).bring(data(f"{server.url}/cube", checksum=SHA), tmp_path, nothing)
    assert (tmp_path / "cube").read_bytes() == BODY


async def test_a_file_that_changed_meanwhile_is_brought_anew(tmp_path: Path) -> None:
    new = b"new" * 1_000_000

    def answer(handler: BaseHTTPRequestHandler, number: int) -> None:
        if number == 1:
            send(handler, breaks=2_000_000)
        else:
            send(handler, new, tag='"two"')

    with serving(answer) as server:
        await HttpMover(UNLIMITED, pause=0).bring(data(f"{server.url}/cube"), tmp_path, nothing)
    assert (tmp_path / "cube").read_bytes() == new


@pytest.mark.parametrize("code", [404, 403, 410])
async def test_a_refusal_is_told_at_once_in_the_servers_words(code: int, tmp_path: Path) -> None:
    with serving(lambda handler, _: handler.send_error(code)) as server:
        with pytest.raises(DataNotThere, match=str(code)):
            await HttpMover(UNLIMITED).bring(data(f"{server.url}/cube"), tmp_path, nothing)
        assert len(server.asked) == 1


async def test_a_server_in_trouble_is_asked_again_and_not_for_ever(tmp_path: Path) -> None:
    with serving(lambda handler, number: handler.send_error(503) if number < 3 else send(handler)) as server:
        await HttpMover(UNLIMITED, pause=0).bring(data(f"{server.url}/cube"), tmp_path, nothing)
    with serving(lambda handler, _: handler.send_error(502)) as server:
        with pytest.raises(DataNotThere, match="502"):
            await HttpMover(UNLIMITED, pause=0, tries=3).bring(data(f"{server.url}/other"), tmp_path, nothing)
        assert len(server.asked) == 3


async def test_redirections_are_followed_but_not_without_end(tmp_path: Path) -> None:
    def answer(handler: BaseHTTPRequestHandler, number: int) -> None:
        if handler.path == "/cube" and number > 1:
            return send(handler)
        handler.send_response(302)
        handler.send_header("Location", "/loop" if handler.path == "/loop" else "/cube")
        handler.send_header("Content-Length", "0")
        handler.end_headers()
        return None

    with serving(answer) as server:
        await HttpMover(UNLIMITED).bring(data(f"{server.url}/start", checksum=SHA), tmp_path, nothing)
        assert (tmp_path / "start").exists(), "it has the name that was asked for"
        with pytest.raises(DataNotThere, match="leads"):
            await HttpMover(UNLIMITED).bring(data(f"{server.url}/loop"), tmp_path, nothing)
        assert len(server.asked) == 2 + 6


async def test_a_host_that_does_not_exist_is_named_and_a_password_is_not(tmp_path: Path) -> None:
    with pytest.raises(DataNotThere) as caught:
        await HttpMover(UNLIMITED, tries=1).bring(data("http://me:secret@no-such-host.invalid/cube"), tmp_path, nothing)
    assert "no-such-host.invalid" in caught.value.message
    assert "secret" not in caught.value.message


async def test_nobody_listens_is_told(tmp_path: Path) -> None:
    with serving(lambda handler, _: None) as server:
        gone = server.url
    with pytest.raises(DataNotThere, match=r"2 tries"):
        await HttpMover(UNLIMITED, pause=0, tries=2).bring(data(f"{gone}/cube"), tmp_path, nothing)


async def test_what_strangers_ask_for_never_reaches_a_private_address(tmp_path: Path) -> None:
    with serving(lambda handler, _: send(handler)) as server:
        for host in ("127.0.0.1", "localhost"):
            location = f"http://{host}:{server.server_port}/cube"
            with pytest.raises(DataNotThere, match="not a public address"):
                await HttpMover(Policy()).bring(data(location), tmp_path, nothing)
        assert not server.asked


async def test_what_never_ends_is_stopped_and_nothing_of_it_is_kept(tmp_path: Path) -> None:
    def endless(handler: BaseHTTPRequestHandler, _: int) -> None:
        handler.send_response(200)
        handler.end_headers()
        with suppress(OSError):
            while True:
                handler.wfile.write(bytes(1 << 16))

    with serving(endless) as server, pytest.raises(DataNotThere, match="more than 1000000 bytes"):
        await HttpMover(replace(UNLIMITED, largest=1_000_000)).bring(data(f"{server.url}/cube"), tmp_path, nothing)
    with serving(lambda handler, _: send(handler, bytes(2000))) as server:
        with pytest.raises(DataNotThere, match="more than 1000 bytes"):
            await HttpMover(replace(UNLIMITED, largest=1000)).bring(data(f"{server.url}/cube"), tmp_path, nothing)
        assert os.listdir(tmp_path) == []
        await HttpMover(replace(UNLIMITED, largest=2000)).bring(data(f"{server.url}/cube"), tmp_path, nothing)
    assert os.listdir(tmp_path) == ["cube"]


@pytest.mark.parametrize(
    "path", ["/", "/a/", "/%2e%2e%2f%2e%2e%2fetc", "/.hidden", "/a%00b", "/a%0Ab", "/..", "/a/%2e%2e"]
)
async def test_a_name_from_an_address_stays_in_the_directory(path: str, tmp_path: Path) -> None:
    with serving(lambda handler, _: send(handler, b"x")) as server:
        await HttpMover(UNLIMITED).bring(data(server.url + path), tmp_path, nothing)
    (brought,) = os.listdir(tmp_path)
    assert (tmp_path / brought).is_file()
    assert not brought.startswith(".")
    assert brought.isprintable()


@pytest.mark.parametrize("location", ["http:///x", "http://[bad/x", "https:"])
async def test_an_address_that_is_none_is_a_reason(location: str) -> None:
    assert HttpMover(UNLIMITED).check(data(location))


async def test_a_directory_is_copied_with_all_that_is_in_it(tmp_path: Path) -> None:
    source, target = tmp_path / "all", tmp_path / "there"
    (source / "a" / "b").mkdir(parents=True)
    (source / "a" / "b" / "run.sh").write_text("#!/bin/sh\n")
    (source / "a" / "b" / "run.sh").chmod(0o755)
    (source / "same").symlink_to("a/b/run.sh")
    (source / "empty").mkdir()
    target.mkdir()
    await FileMover(UNLIMITED).bring(data(f"file://{source}"), target, nothing)
    found = {str(path.relative_to(target)) for path in target.rglob("*")}
    assert found == {"a", "a/b", "a/b/run.sh", "same", "empty"}
    assert os.access(target / "a/b/run.sh", os.X_OK)
    assert not (target / "same").is_symlink()


async def test_a_directory_can_be_brought_to_a_place_within_itself(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    target = tmp_path / "state" / "data"
    target.mkdir(parents=True)
    await FileMover(UNLIMITED).bring(data(str(tmp_path)), target, nothing)
    assert sorted(str(path.relative_to(target)) for path in target.rglob("*")) == ["a", "state"]


async def test_a_link_that_leads_out_of_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "there").mkdir()
    with pytest.raises(DataNotThere, match="leads elsewhere"):
        await FileMover(UNLIMITED).bring(data(str(tmp_path / "all")), tmp_path / "there", nothing)


async def test_a_special_file_is_refused_and_nothing_hangs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "there").mkdir()
    async with asyncio.timeout(30):
        for path in (tmp_path / "pipe", Path("/dev/zero")):
            with pytest.raises(DataNotThere, match="not a file"):
                await FileMover(UNLIMITED).bring(data(str(path)), tmp_path / "there", nothing)


async def test_a_missing_file_is_told_in_the_systems_words(tmp_path: Path) -> None:
    with pytest.raises(DataNotThere, match="No such file"):
        await FileMover(UNLIMITED).bring(data(str(tmp_path / "none")), tmp_path, nothing)


@pytest.mark.parametrize("location", ["file://elsewhere/x", "file:x", "x/y", "file:"])
async def test_a_file_that_is_not_named_by_its_whole_path_is_a_reason(location: str) -> None:
    (reason,) = FileMover(UNLIMITED).check(data(location))
    assert reason.nearest


async def test_files_outside_the_allowed_directories_are_refused_by_name_and_by_link(tmp_path: Path) -> None:
    inside, outside, target = tmp_path / "in", tmp_path / "out", tmp_path / "there"
    for folder in (inside, outside, target):
        folder.mkdir()
    (outside / "secret").write_text("secret")
    (inside / "fine").write_text("fine")
    (inside / "link").symlink_to(outside / "secret")
    mover = FileMover(Policy(file_roots=[inside]))
    for path in (outside / "secret", inside / ".." / "out" / "secret"):
        assert mover.check(data(str(path)))
        with pytest.raises(DataNotThere, match="only"):
            await mover.bring(data(str(path)), target, nothing)
    with pytest.raises(DataNotThere, match="leads to"):
        await mover.bring(data(str(inside / "link")), target, nothing)
    await mover.bring(data(str(inside / "fine")), target, nothing)
    assert [path.name for path in target.iterdir()] == ["fine"]
    assert FileMover(Policy()).check(data(str(inside / "fine"))), "with no directories, nothing is allowed"
