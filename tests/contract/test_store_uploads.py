"""Uploads in the store: what they have is added up with every change, and a file takes another's place at once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from sublet.data.model.uploads import Upload, UploadedFile
from sublet.store.store import Store

pytestmark = pytest.mark.anyio
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
LATER = NOON + timedelta(days=1)


def upload(id: str, person: str = "ann", name: str = "rain") -> Upload:
    return Upload(id, person, name, NOON, LATER)


def file(id: str, path: str, size: int = 10, of: str = "u1") -> UploadedFile:
    return UploadedFile(id, of, path, size, NOON, LATER, modified=NOON, is_executable=True)


async def test_an_upload_knows_what_it_has_after_every_change(open_store: Callable[[], Store]) -> None:
    store = open_store()
    await store.write(lambda tx: (tx.uploads.add(upload("u1")), tx.uploads.add(upload("u2", "bob"))))
    for new in (file("f1", "a"), file("f2", "b/ä", 5), file("f3", "a", 7), file("f4", "a", 1, "u2")):
        await store.write(lambda tx, new=new: tx.uploads.add_file(new))
    assert await store.read(lambda tx: (tx.uploads.count_bytes("ann"), tx.uploads.count_bytes())) == (22, 23)
    assert await store.write(lambda tx: tx.uploads.finish_file(file("f1", "a"))) == []
    assert await store.write(lambda tx: tx.uploads.finish_file(file("f3", "a", 7))) == ["f1"]
    assert await store.write(lambda tx: tx.uploads.finish_file(file("f3", "a", 7))) == []
    [mine] = await store.read(lambda tx: tx.uploads.of("ann"))
    assert (mine.files, mine.size) == (2, 12)
    kept = await store.read(lambda tx: tx.uploads.files("u1"))
    assert [(one.id, one.is_whole, one.modified, one.is_executable) for one in kept] == [
        ("f3", True, NOON, True),
        ("f2", False, NOON, True),
    ]
    assert await store.read(lambda tx: tx.uploads.find_known_files({"f1", "f2", "f9"})) == {"f2"}
    assert sorted(await store.write(lambda tx: tx.uploads.remove_all("ann"))) == ["f2", "f3"]
    assert await store.read(lambda tx: (tx.uploads.count_bytes(), tx.uploads.find("ann", "rain"))) == (1, None)
    assert await store.read(lambda tx: tx.uploads.find("ann", "u2")) is None, "an id is of no use to others"


async def test_what_has_expired_is_found_and_what_stands_in_the_way_too(open_store: Callable[[], Store]) -> None:
    store = open_store()
    await store.write(lambda tx: tx.uploads.add(upload("u1")))
    for new in (file("f1", "a/b"), file("f2", "ab")):
        await store.write(lambda tx, new=new: tx.uploads.add_file(new))
    await store.write(lambda tx: tx.uploads.finish_file(file("f2", "ab")))
    for path, other in (("a", "a/b"), ("a/b/c", "a/b"), ("a/c", None), ("ab/c", "ab"), ("abc", None), ("a/b", None)):
        assert await store.read(lambda tx, path=path: tx.uploads.find_obstacle("u1", path)) == other
    assert [one.id for one in await store.read(lambda tx: tx.uploads.list_expired_files(LATER, 10))] == ["f1"]
    await store.write(lambda tx: tx.uploads.touch_file("f1", LATER + timedelta(hours=1)))
    assert await store.read(lambda tx: tx.uploads.list_expired_files(LATER, 10)) == []
    assert [one.id for one in await store.read(lambda tx: tx.uploads.list_expired(LATER, 10))] == ["u1"]
    await store.write(lambda tx: tx.uploads.keep("u1", LATER + timedelta(days=1)))
    assert await store.read(lambda tx: tx.uploads.list_expired(LATER, 10)) == []
