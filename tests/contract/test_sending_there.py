"""A system sends results by itself, whole or not at all, to the named address alone; what it can't is sent here."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sublet.platforms.caching import FilePut, NoWay
from sublet.platforms.slurm.platform import Slurm
from tests import threads
from tests.contract.far_system import open_platform

pytestmark = pytest.mark.anyio
KEY = "0b0f8a4e-0000-4000-8000-000000000001"


class Shelf(BaseHTTPRequestHandler):
    """Takes files, unless it is told to answer otherwise."""

    answers: ClassVar[list[int]] = []
    taken: ClassVar[dict[str, tuple[bytes, str]]] = {}
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        code = self.answers.pop(0) if self.answers else 201
        if code == 201:
            self.taken[self.path] = body, self.headers.get("Authorization", "")
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.send_header("Location", "/elsewhere")
        self.end_headers()


@pytest.fixture
def server() -> Iterator[str]:
    Shelf.answers.clear()
    Shelf.taken.clear()
    opened = ThreadingHTTPServer(("127.0.0.1", 0), Shelf)
    with threads.serving(opened):
        yield f"http://127.0.0.1:{opened.server_address[1]}"


@pytest.fixture
async def slurm(tmp_path: Path) -> AsyncIterator[Slurm]:
    platform = await open_platform(tmp_path, tmp_path / "far")
    work = Path(await platform.session_directory(KEY)) / "work"
    work.mkdir(parents=True)
    (work / "a b.txt").write_bytes(b"one")
    (tmp_path / "private").write_text("secret")
    (work / "link").symlink_to(tmp_path / "private")
    yield platform
    await platform.close()


async def send(slurm: Slurm, *puts: FilePut, public_only: bool = False) -> None:
    await slurm.send_files(KEY, puts, public_only=public_only)


async def test_a_file_is_put_with_what_opens_its_address_and_tried_again_where_that_may_help(
    slurm: Slurm, server: str
) -> None:
    Shelf.answers[:] = [503]
    await send(slurm, FilePut("a b.txt", 3, f"{server}/x?sign=1", {"Authorization": "Bearer own"}))
    assert Shelf.taken == {"/x?sign=1": (b"one", "Bearer own")}


@pytest.mark.parametrize(
    ("put", "answers", "why"),
    [
        (("a b.txt", 3), [403], "answered 403"),
        (("a b.txt", 3), [307], "answered 307"),
        (("a b.txt", 4), [], "not as large as it was"),
        (("link", 6), [], "a link that leads elsewhere"),
        (("gone", 3), [], "No such file"),
    ],
)
async def test_what_can_not_be_sent_there_is_left_to_this_machine_and_nothing_is_sent(
    slurm: Slurm, server: str, put: tuple[str, int], answers: list[int], why: str
) -> None:
    Shelf.answers[:] = answers
    with pytest.raises(NoWay, match=why):
        await send(slurm, FilePut(*put, f"{server}/x"))
    assert Shelf.taken == {}


async def test_people_of_a_gateway_reach_no_private_address_that_way(slurm: Slurm, server: str) -> None:
    with pytest.raises(NoWay, match="not a public address"):
        await send(slurm, FilePut("a b.txt", 3, f"{server}/x"), public_only=True)
    assert Shelf.taken == {}


async def test_a_host_that_can_not_be_reached_is_not_tried_again_at_once_and_one_that_may_not_send_does_not(
    slurm: Slurm, server: str
) -> None:
    dead = FilePut("a b.txt", 3, "http://127.0.0.1:9/x")
    with pytest.raises(NoWay, match="can't be reached"):
        await send(slurm, dead)
    cache = await slurm.open_cache()
    assert list(cache.no_way) == ["127.0.0.1:9"]
    slurm.downloads = False
    slurm._heed()
    with pytest.raises(NoWay, match="may not fetch"):
        await send(slurm, FilePut("a b.txt", 3, f"{server}/x"))
    assert Shelf.taken == {}
