"""A server that takes Digest logins only is read and written like any other, through the service."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sublet.booking.model.request import Data
from sublet.data.executables import Movers
from sublet.data.write_back import BroughtVersions, look_at_source
from sublet.kernel.errors import DataNotThere
from sublet.movers.http import HttpMover
from sublet.movers.port import SIMPLE, Content, NoLinks, Policy
from sublet.movers.webdav import WebDavMover
from tests.contract.test_movers import nothing
from tests.storage_servers import StorageServer, serve_webdav

pytestmark = pytest.mark.anyio
CONTENT = b"result" * 10_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageServer]:
    directory = tmp_path_factory.mktemp("digest")
    (directory / "f").mkdir()
    for name in ("a", "f/b"):
        (directory / name).write_bytes(b"abc")
    with serve_webdav(directory, is_digest=True) as opened:
        yield opened


async def read(offset: int) -> AsyncIterator[bytes]:
    yield CONTENT[offset:]


async def test_files_and_folders_are_brought_and_no_system_is_given_a_header_that_does_not_open_them(
    server: StorageServer, tmp_path: Path
) -> None:
    mover = WebDavMover(Policy(public_only=False, credentials=[server.credential]))
    for number, path in enumerate(("a", "f/")):
        data = Data("in", SIMPLE, f"dav://{server.address}/{path}")
        target = tmp_path / str(number)
        target.mkdir()
        await mover.bring(data, target, nothing)
        assert [file.read_bytes() for file in target.rglob("*") if file.is_file()] == [b"abc"]
        with pytest.raises(NoLinks):
            await mover.links(data)
    with pytest.raises(DataNotThere, match="401"):
        await WebDavMover(Policy(public_only=False)).links(data)


@pytest.mark.parametrize(("scheme", "path", "inside"), [("dav", "c", "c"), ("dav", "g/", "d"), ("http", "c", "c")])
async def test_a_change_by_others_is_seen_before_a_file_is_written_back(
    server: StorageServer, scheme: str, path: str, inside: str
) -> None:
    credential = replace(server.credential, place=f"{scheme}://{server.address}")
    policy = Policy(public_only=False, credentials=[credential])
    mover = WebDavMover(policy) if scheme == "dav" else HttpMover(policy)
    file = server.directory / path / inside if path.endswith("/") else server.directory / path
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"mine")
    data = Data("in", SIMPLE, f"{scheme}://{server.address}/{path}")
    before = await look_at_source(Movers([mover]), data)
    brought = BroughtVersions(Path(), versions={"in": before.versions or {}})
    assert not brought.has_changed("in", inside, await look_at_source(Movers([mover]), data))
    file.write_bytes(b"another's")
    assert brought.has_changed("in", inside, await look_at_source(Movers([mover]), data))
    file.unlink()
    assert brought.has_changed("in", inside, await look_at_source(Movers([mover]), data))


async def test_results_are_sent_although_a_body_can_be_read_only_once(server: StorageServer) -> None:
    policy = Policy(public_only=False, credentials=[server.credential])
    content = Content("out.txt", len(CONTENT), read)
    mover = WebDavMover(policy)
    assert await mover.open_put("out.txt", len(CONTENT), f"dav://{server.address}/new/") is None
    await mover.push(content, f"dav://{server.address}/new/", nothing)
    await HttpMover(policy).push(content, f"http://{server.address}/put.txt", nothing)
    for path in ("new/out.txt", "put.txt"):
        assert (server.directory / path).read_bytes() == CONTENT
