"""Uploads over HTTP: tus as its specification says, quotas, privacy, and what goes wrong."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import subprocess
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sublet.data.model.uploads import write_metadata
from sublet.kernel.settings import Settings
from sublet.service import Service
from tests.api.conftest import Callers

pytestmark = pytest.mark.anyio
TUS = {"Tus-Resumable": "1.0.0"}
OCTETS = {**TUS, "Content-Type": "application/offset+octet-stream"}


async def begin(client: httpx2.AsyncClient, size: int, body: bytes = b"", **metadata: str) -> httpx2.Response:
    headers = {**(OCTETS if body else TUS), "Upload-Length": str(size), "Upload-Metadata": write_metadata(metadata)}
    return await client.post("/v1/tus", headers=headers, content=body)


async def append(client: httpx2.AsyncClient, place: str, offset: int, body: Any, **more: str) -> httpx2.Response:
    return await client.patch(place, headers={**OCTETS, "Upload-Offset": str(offset), **more}, content=body)


async def offset_of(client: httpx2.AsyncClient, place: str) -> int:
    answer = await client.head(place, headers=TUS)
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    return int(answer.headers["upload-offset"])


async def send(client: httpx2.AsyncClient, name: str, path: str, body: bytes = b"hello") -> str:
    answer = await begin(client, len(body), body, upload=name, path=path)
    assert answer.status_code == 201, answer.text
    return str(answer.headers["location"])


async def files_of(client: httpx2.AsyncClient, name: str) -> dict[str, tuple[int, bool]]:
    answer = await client.get(f"/v1/uploads/{name}")
    assert answer.status_code == 200, answer.text
    return {file["path"]: (file["offset"], file["whole"]) for file in answer.json()["items"]}


async def test_what_the_server_can_do_is_told_without_a_token(anonymous: httpx2.AsyncClient) -> None:
    answer = await anonymous.options("/v1/tus")
    assert answer.status_code == 204
    assert answer.headers["tus-version"] == answer.headers["tus-resumable"] == "1.0.0"
    assert "creation-with-upload" in answer.headers["tus-extension"]
    assert int(answer.headers["tus-max-size"]) > 0


async def test_a_file_comes_in_pieces_and_goes_on_where_it_stopped(ann: httpx2.AsyncClient) -> None:
    begun = await begin(ann, 10, upload="pieces", path="in/a.txt")
    place = begun.headers["location"]
    assert (begun.status_code, begun.headers["upload-offset"]) == (201, "0")
    assert begun.headers["upload-expires"].endswith("GMT")
    assert (await append(ann, place, 0, b"hello")).headers["upload-offset"] == "5"
    assert await files_of(ann, "pieces") == {"in/a.txt": (5, False)}
    wrong = await append(ann, place, 3, b"xx")
    assert (wrong.status_code, wrong.json()["code"]) == (409, "wrong-offset")
    assert await offset_of(ann, place) == 5
    done = await append(ann, place, 5, b"world")
    assert (done.status_code, done.headers["upload-offset"]) == (204, "10")
    assert await files_of(ann, "pieces") == {"in/a.txt": (10, True)}


async def test_a_connection_that_breaks_loses_nothing_of_what_came(ann: httpx2.AsyncClient) -> None:
    place = (await begin(ann, 6 << 20, upload="cut", path="big.bin")).headers["location"]

    async def broken() -> AsyncIterator[bytes]:
        yield b"a" * (3 << 20)
        raise ConnectionResetError("the line is cut")

    with pytest.raises(ConnectionResetError):
        await append(ann, place, 0, broken())
    assert await offset_of(ann, place) == 3 << 20
    assert (await append(ann, place, 3 << 20, b"b" * (3 << 20))).status_code == 204
    assert await files_of(ann, "cut") == {"big.bin": (6 << 20, True)}


async def test_of_two_writers_one_is_told_that_the_other_is_at_it(ann: httpx2.AsyncClient) -> None:
    place = (await begin(ann, 8, upload="two", path="a")).headers["location"]
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b"aaaa"
        begun.set()
        await go_on.wait()
        yield b"bbbb"

    first = asyncio.create_task(append(ann, place, 0, slow()))
    await begun.wait()
    second = await append(ann, place, 0, b"cccc")
    assert (second.status_code, second.json()["code"]) == (423, "upload-busy")
    go_on.set()
    assert (await first).headers["upload-offset"] == "8"


@pytest.mark.parametrize(
    "metadata",
    [
        {"upload": "u", "path": "../up"},
        {"upload": "u", "path": "/etc/passwd"},
        {"upload": "u", "path": "a/../../b"},
        {"upload": "u", "path": "a\nb"},
        {"upload": "u", "path": "a\x7fb"},
        {"upload": "u", "path": "a//b"},
        {"upload": "u", "path": "."},
        {"upload": "u", "path": "x" * 300},
        {"upload": "../u", "path": "a"},
        {"upload": "a/b", "path": "a"},
        {"upload": "a\nb", "path": "a"},
        {"relativePath": "folder/../../x"},
        {},
    ],
)
async def test_a_name_that_leads_elsewhere_or_can_not_be_seen_is_refused(
    ann: httpx2.AsyncClient, metadata: dict[str, str]
) -> None:
    answer = await begin(ann, 3, b"abc", **metadata)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-upload")
    assert (await ann.get("/v1/uploads")).json()["items"] == []


async def test_what_other_clients_say_of_a_file_names_the_upload(ann: httpx2.AsyncClient) -> None:
    await begin(ann, 3, b"abc", filename="a.txt", relativePath="my folder/sub/a.txt")
    await begin(ann, 3, b"abc", filename="alone.csv", relativePath="null")
    await begin(ann, 0, upload="empty", path="nothing")
    assert await files_of(ann, "my-folder") == {"sub/a.txt": (3, True)}
    assert await files_of(ann, "alone.csv") == {"alone.csv": (3, True)}
    assert await files_of(ann, "empty") == {"nothing": (0, True)}


async def test_a_checksum_is_compared_and_what_differs_is_not_kept(ann: httpx2.AsyncClient) -> None:
    place = (await begin(ann, 8, upload="sums", path="a")).headers["location"]
    good, wrong = (base64.b64encode(hashlib.sha1(data).digest()).decode() for data in (b"aaaa", b"bbbb"))
    answer = await append(ann, place, 0, b"aaaa", **{"Upload-Checksum": f"sha1 {wrong}"})
    assert (answer.status_code, answer.json()["code"]) == (460, "wrong-checksum")
    assert await offset_of(ann, place) == 0
    assert (await append(ann, place, 0, b"aaaa", **{"Upload-Checksum": f"sha1 {good}"})).status_code == 204
    assert (await append(ann, place, 4, b"aaaa", **{"Upload-Checksum": "crc32 xxxx"})).status_code == 400
    assert await offset_of(ann, place) == 4


async def test_more_than_a_file_was_to_have_and_other_versions_of_tus_are_refused(ann: httpx2.AsyncClient) -> None:
    place = (await begin(ann, 4, upload="more", path="a")).headers["location"]
    assert (await append(ann, place, 0, b"12345")).status_code == 400
    assert await offset_of(ann, place) == 0
    old = await ann.head(place, headers={"Tus-Resumable": "0.2.2"})
    assert old.status_code == 412
    assert (await ann.post("/v1/tus", headers=TUS | {"Upload-Defer-Length": "1"})).status_code == 400
    plain = await ann.patch(place, headers={**TUS, "Upload-Offset": "0"}, content=b"1234")
    assert plain.status_code == 415


async def test_behind_something_that_knows_post_alone_the_method_is_a_header(ann: httpx2.AsyncClient) -> None:
    place = (await begin(ann, 4, upload="override", path="a")).headers["location"]
    headers = {**OCTETS, "Upload-Offset": "0", "X-HTTP-Method-Override": "PATCH"}
    assert (await ann.post(place, headers=headers, content=b"1234")).headers["upload-offset"] == "4"


async def test_an_upload_is_its_owners_alone(
    ann: httpx2.AsyncClient, bob: httpx2.AsyncClient, anonymous: httpx2.AsyncClient
) -> None:
    place = await send(ann, "mine", "a.txt")
    for answer in (
        await bob.head(place, headers=TUS),
        await append(bob, place, 5, b""),
        await bob.delete(place, headers=TUS),
        await bob.get("/v1/uploads/mine"),
        await bob.post("/v1/uploads/mine/keep", json={"duration": "7d"}),
        await bob.delete("/v1/uploads/mine"),
    ):
        assert answer.status_code == 404
    id = (await ann.get("/v1/uploads/mine")).json()["upload"]["id"]
    assert (await bob.get(f"/v1/uploads/{id}")).status_code == 404
    assert (await begin(anonymous, 1, b"a", upload="x", path="a")).status_code == 401
    asked = {"run": ["true"], "time": "1m", "data": [f"upload:{id}/a.txt"]}
    no = (await bob.post("/v1/offersets", json=asked)).json()
    assert (no["result"], no["reasons"][0]["message"]) == ("NO", f"You have no upload {id}.")
    await send(bob, "mine", "other.txt")
    assert await files_of(ann, "mine") == {"a.txt": (5, True)}


async def test_a_newer_file_of_the_same_path_takes_the_place_of_the_older_when_it_is_whole(
    ann: httpx2.AsyncClient, service: Service
) -> None:
    before = (await send(ann, "again", "a.txt", b"old")).rpartition("/")[2]
    place = (await begin(ann, 5, b"ne", upload="again", path="a.txt")).headers["location"]
    area = service.uploads.kept.area
    assert area.path(before).read_bytes() == b"old"
    await append(ann, place, 2, b"wer")
    assert await files_of(ann, "again") == {"a.txt": (5, True)}
    assert not area.path(before).exists()
    listed = next(item for item in (await ann.get("/v1/uploads")).json()["items"] if item["name"] == "again")
    assert (listed["files"], listed["size"]) == (1, 5)


async def test_a_path_can_not_be_a_file_and_a_folder(ann: httpx2.AsyncClient) -> None:
    await send(ann, "tree", "a/b.txt")
    above = await begin(ann, 1, b"x", upload="tree", path="a")
    below = await begin(ann, 1, b"x", upload="tree", path="a/b.txt/c")
    assert [answer.json()["code"] for answer in (above, below)] == ["upload-path-taken"] * 2


async def test_quotas_of_a_person_and_of_all_are_kept_and_freed_by_removing(callers: Callers, service: Service) -> None:
    ann, bob = await callers.someone("ann"), await callers.someone("bob")
    usual, taken = service.settings.uploads, await service.store.read(lambda tx: tx.uploads.count_bytes())
    limits = usual.model_copy(update={"per_person": 100, "in_all": taken + 150, "most_files": 2})
    service.settings.take_up(Settings(home=service.settings.home, uploads=limits), ["uploads"])
    try:
        assert (await begin(ann, 90, upload="a", path="x")).status_code == 201
        over = await begin(ann, 20, upload="a", path="y")
        assert (over.status_code, over.json()["code"]) == (413, "upload-quota-full")
        assert "your uploads have" in over.json()["detail"]
        assert "all people" in (await begin(bob, 80, upload="a", path="x")).json()["detail"]
        assert (await ann.delete("/v1/uploads/a")).status_code == 204
        assert (await begin(bob, 80, upload="a", path="x")).status_code == 201
        assert (await begin(bob, 1, upload="a", path="y")).status_code == 201
        assert "2 files" in (await begin(bob, 1, upload="a", path="z")).json()["detail"]
    finally:
        service.settings.take_up(Settings(home=service.settings.home, uploads=usual), ["uploads"])


async def test_it_is_kept_for_as_long_as_its_owner_says_and_gone_afterwards(
    ann: httpx2.AsyncClient, service: Service
) -> None:
    await send(ann, "kept", "a.txt")
    half = (await begin(ann, 9, b"half", upload="kept", path="b.txt")).headers["location"]
    long = await ann.post("/v1/uploads/kept/keep", json={"duration": "90d"})
    assert long.status_code == 200
    assert (await ann.post("/v1/uploads/kept/keep", json={"duration": "9999d"})).status_code == 400
    care, now = service.uploads.care, service.now()
    await care.expire(now + timedelta(days=2))
    assert await files_of(ann, "kept") == {"a.txt": (5, True)}
    assert (await ann.head(half, headers=TUS)).status_code == 404
    await care.expire(now + timedelta(days=91))
    assert (await ann.get("/v1/uploads/kept")).status_code == 404
    assert list(service.uploads.kept.area.ids()) == [] or half.rpartition("/")[2] not in service.uploads.kept.area.ids()


async def test_bytes_that_no_upload_knows_are_swept_and_nothing_else(ann: httpx2.AsyncClient, service: Service) -> None:
    place = await send(ann, "swept", "a.txt")
    area = service.uploads.kept.area
    stray = "00000000-0000-4000-8000-000000000000"
    area.path(stray).parent.mkdir(exist_ok=True)
    area.path(stray).write_bytes(b"left by a crash")
    await service.uploads.care.sweep()
    assert not area.path(stray).exists()
    assert area.path(place.rpartition("/")[2]).read_bytes() == b"hello"


async def test_a_full_disk_keeps_what_it_took_and_the_rest_comes_when_there_is_room(
    ann: httpx2.AsyncClient, service: Service, tmp_path: Path
) -> None:
    if os.geteuid():
        pytest.skip("only root can mount a small disk")
    area, disk = service.uploads.kept.area, tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=True)  # noqa: ASYNC221
    usual, area.root = area.root, disk / "uploads"
    try:
        too_large = await begin(ann, 8 << 20, upload="full", path="a")
        assert (too_large.status_code, too_large.json()["code"]) == (503, "service-full")
        place = (await begin(ann, 3 << 20, upload="full", path="a")).headers["location"]
        filler = disk / "filler"
        filler.write_bytes(b"x" * (2 << 20))
        full = await append(ann, place, 0, b"y" * (3 << 20))
        assert (full.status_code, full.json()["code"]) == (503, "service-full")
        came = await offset_of(ann, place)
        assert 0 < came < 3 << 20
        filler.unlink()
        assert (await append(ann, place, came, b"y" * ((3 << 20) - came))).status_code == 204
        assert await files_of(ann, "full") == {"a": (3 << 20, True)}
        assert area.path(place.rpartition("/")[2]).read_bytes() == b"y" * (3 << 20)
    finally:
        area.root = usual
        subprocess.run(["umount", disk], check=True)  # noqa: ASYNC221


async def test_what_a_session_waits_for_is_not_removed_unless_forced(ann: httpx2.AsyncClient, service: Service) -> None:
    await send(ann, "needed", "in/a.txt")
    asked = {
        "run": ["true"],
        "time": "1m",
        "start": "tomorrow 09:00-10:00",
        "data": [{"location": "upload:needed/in/", "path": "in"}],
    }
    offers = (await ann.post("/v1/offersets", json=asked)).json()
    assert offers["result"] == "YES", offers
    session = (await ann.post(f"/v1/sessions/{offers['offers'][0]['id']}/accept")).json()
    refused = await ann.delete("/v1/uploads/needed")
    assert (refused.status_code, refused.json()["code"]) == (409, "upload-in-use")
    assert session["id"][:8] in refused.json()["detail"]
    await service.uploads.care.expire(service.now() + timedelta(days=31))
    assert await files_of(ann, "needed") == {"in/a.txt": (5, True)}
    assert (await ann.delete("/v1/uploads/needed", params={"force": "true"})).status_code == 204


async def test_a_request_for_what_did_not_come_whole_is_answered_no(ann: httpx2.AsyncClient) -> None:
    await begin(ann, 9, b"half", upload="half", path="a.txt")
    asked = {"run": ["true"], "time": "1m", "data": ["upload:half/a.txt"]}
    [reason, *_] = (await ann.post("/v1/offersets", json=asked)).json()["reasons"]
    assert "did not come whole yet" in reason["message"]
    await send(ann, "half", "b.txt")
    asked["data"] = ["upload:half/b.txt"]
    assert (await ann.post("/v1/offersets", json=asked)).json()["result"] == "YES"
