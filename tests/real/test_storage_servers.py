"""Data comes from and goes to object stores and WebDAV servers that others wrote."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sublet.booking.model.request import Data
from sublet.data.model.links import FileLink
from sublet.kernel.errors import DataNotSent, DataNotThere
from sublet.movers import s3
from sublet.movers.http import HttpMover
from sublet.movers.port import UNLIMITED, Content, Links, Mover, Pushes, PutsByAddress
from sublet.movers.s3 import S3Mover
from sublet.movers.webdav import WebDavMover
from tests.storage_servers import StorageServer, serve_s3, serve_webdav, sign_address

pytestmark = pytest.mark.anyio
BODY = os.urandom(3_000_000)
TREE = {
    "a.csv": b"1,2\n",
    "a.csv.part": b"3,4\n",
    "a.csv.part.version": b"5",
    "deep/er/b c+ü%.bin": BODY,
    "deep/empty": b"",
}
STORES: dict[str, tuple[Callable[..., Mover], str, str]] = {
    "s3": (S3Mover, "s3+http", "bucket"),
    "webdav": (WebDavMover, "dav", "team"),
}


@pytest.fixture(scope="module", params=list(STORES))
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageServer]:
    directory = tmp_path_factory.mktemp("store") / "data"
    serve = serve_s3 if request.param == "s3" else serve_webdav
    (directory / STORES[request.param][2]).mkdir(parents=True)
    with serve(directory) as server:
        yield server


@pytest.fixture
def mover(store: StorageServer) -> Mover:
    return STORES[_kind(store)][0](policy=replace(UNLIMITED, credentials=[store.credential]))


@pytest.fixture
def room(store: StorageServer) -> str:
    """The address of a bucket, or of a folder."""
    _, scheme, top = STORES[_kind(store)]
    return f"{scheme}://{store.address}/{top}"


def _kind(store: StorageServer) -> str:
    return "s3" if store.credential.kind == "s3" else "webdav"


def quiet(done: int, total: int | None) -> None:
    """Tell nobody."""


def put_tree(store: StorageServer, name: str) -> None:
    for path, content in TREE.items():
        file = store.directory / STORES[_kind(store)][2] / name / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def holding(content: bytes, path: str) -> Content:
    async def read(first: int) -> AsyncIterator[bytes]:
        for start in range(first, len(content), 1 << 16):
            yield content[start : start + (1 << 16)]

    return Content(path, len(content), read)


def seen(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


async def test_a_file_is_measured_and_brought_with_its_checksum(
    store: StorageServer, mover: Mover, room: str, tmp_path: Path
) -> None:
    put_tree(store, "one")
    checksum = f"sha256:{hashlib.sha256(BODY).hexdigest()}"
    data = Data("cube", "simple-data-resource", f"{room}/one/deep/er/b%20c+%C3%BC%25.bin", checksum=checksum)
    assert await mover.measure(data) == len(BODY)
    told: list[int] = []
    await mover.bring(data, tmp_path, lambda done, total: told.append(done))
    assert seen(tmp_path) == {"b c+ü%.bin": BODY}
    assert told[-1] == len(BODY)
    with pytest.raises(DataNotThere, match="checksum"):
        await mover.bring(replace(data, checksum="sha256:" + "0" * 64), tmp_path, quiet)


class HalfWay(Exception):
    """So much has come."""


async def test_what_was_cut_off_goes_on_from_there_and_is_whole(
    store: StorageServer, mover: Mover, room: str, tmp_path: Path
) -> None:
    put_tree(store, "cut")
    data = Data("cube", "simple-data-resource", f"{room}/cut/deep/er/b%20c+%C3%BC%25.bin")
    offsets: list[int] = []

    def stop_half_way(done: int, total: int | None) -> None:
        if done > len(BODY) // 2:
            raise HalfWay

    with pytest.raises(HalfWay):
        await mover.bring(data, tmp_path, stop_half_way)
    assert not (tmp_path / "b c+ü%.bin").exists()
    await mover.bring(data, tmp_path, lambda done, total: offsets.append(done))
    assert seen(tmp_path) == {"b c+ü%.bin": BODY}
    assert offsets[0] > len(BODY) // 2
    assert isinstance(mover, Links)
    [link] = (await mover.links(data)).links
    assert (link.size, await read(mover, data, link, 1_000_000)) == (len(BODY), BODY[1_000_000:])


async def read(mover: Links, data: Data, link: FileLink, offset: int) -> bytes:
    return b"".join([piece async for piece in mover.read(data, link, offset)])


@pytest.mark.parametrize("store", ["s3"], indirect=True)  # WebDAV servers sign no addresses
async def test_an_address_that_was_signed_by_others_is_measured_and_read_in_parts(
    store: StorageServer, tmp_path: Path
) -> None:
    put_tree(store, "signed")
    data = Data("cube", "simple-data-resource", sign_address(store, "bucket", "signed/deep/er/b c+ü%.bin"))
    mover = HttpMover(UNLIMITED)
    [link] = (await mover.links(data)).links
    assert (link.size, await read(mover, data, link, 1_000_000)) == (len(BODY), BODY[1_000_000:])
    await mover.bring(data, tmp_path, quiet)
    assert seen(tmp_path) == {"b c+ü%.bin": BODY}
    wrong = replace(data, location=data.location[:-3] + "000")
    with pytest.raises(DataNotThere, match="403") as caught:
        await mover.links(wrong)
    assert "X-Amz" not in caught.value.message


async def test_a_folder_is_brought_with_all_that_is_in_it(
    store: StorageServer, mover: Mover, room: str, tmp_path: Path
) -> None:
    put_tree(store, "tree")
    await mover.bring(Data("all", "simple-data-resource", f"{room}/tree/"), tmp_path, quiet)
    assert seen(tmp_path) == TREE


async def test_what_is_not_there_and_who_may_not_read_is_told_in_the_servers_words(
    store: StorageServer, mover: Mover, room: str, tmp_path: Path
) -> None:
    with pytest.raises(DataNotThere, match="404"):
        await mover.bring(Data("x", "simple-data-resource", f"{room}/nothing.dat"), tmp_path, quiet)
    wrong = replace(store.credential, secret="not-the-one")
    stranger = STORES[_kind(store)][0](policy=replace(UNLIMITED, credentials=[wrong]))
    with pytest.raises(DataNotThere, match=r"40[13]") as refused:
        await stranger.bring(Data("x", "simple-data-resource", f"{room}/tree/"), tmp_path, quiet)
    assert "not-the-one" not in str(refused.value)
    assert isinstance(stranger, Pushes)
    with pytest.raises(DataNotSent, match=r"40[13]") as refused_to_send:
        await stranger.push(holding(b"x", "x"), f"{room}/new/", quiet)
    assert "not-the-one" not in str(refused_to_send.value)
    assert seen(tmp_path) == {}


async def test_a_credential_is_shown_to_the_place_that_it_is_for_alone(
    store: StorageServer, room: str, tmp_path: Path
) -> None:
    elsewhere = replace(store.credential, place=f"{room.partition('://')[0]}://127.0.0.2:1")
    mover = STORES[_kind(store)][0](policy=replace(UNLIMITED, credentials=[elsewhere]))
    with pytest.raises(DataNotThere, match=r"40[013]"):
        await mover.bring(Data("x", "simple-data-resource", f"{room}/tree/a.csv"), tmp_path, quiet)


async def test_a_file_is_sent_into_folders_that_are_made_and_sent_again_without_harm(
    store: StorageServer, mover: Mover, room: str
) -> None:
    assert isinstance(mover, Pushes)
    for content in (b"first", BODY):
        address = await mover.push(holding(content, "out/pic ü.png"), f"{room}/runs/7/", quiet)
    there = store.directory / STORES[_kind(store)][2] / "runs" / "7"
    assert seen(there) == {"out/pic ü.png": BODY}
    assert address.startswith(f"{room}/runs/7/out/pic")
    with pytest.raises(DataNotSent, match="a folder has that name; write a / at the end of the address"):
        await mover.push(holding(b"x", "x"), f"{room}/runs/7", quiet)
    assert isinstance(mover, PutsByAddress)
    with pytest.raises(DataNotSent, match="a folder has that name"):
        await mover.open_put("x", 1, f"{room}/runs/7")
    assert seen(there) == {"out/pic ü.png": BODY}, "all that is in the folder is there still"


async def test_a_large_file_is_sent_in_parts_and_is_whole(
    store: StorageServer, mover: Mover, room: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "PART", 5 << 20)
    content = os.urandom((12 << 20) + 17)
    assert isinstance(mover, Pushes)
    await mover.push(holding(content, "large.bin"), f"{room}/large.bin", quiet)
    assert (store.directory / STORES[_kind(store)][2] / "large.bin").read_bytes() == content


async def test_a_file_that_shrinks_as_it_is_read_is_not_sent(store: StorageServer, mover: Mover, room: str) -> None:
    assert isinstance(mover, Pushes)
    promised = replace(holding(b"short", "s.dat"), size=500)
    with pytest.raises(DataNotSent):
        await mover.push(promised, f"{room}/s.dat", quiet)
    assert not (store.directory / STORES[_kind(store)][2] / "s.dat").exists()
