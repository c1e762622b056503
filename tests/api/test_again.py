"""Once more with changes, results by their size and in part, and nothing of it for others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.api.conftest import Callers

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def platforms() -> dict[str, Any]:
    """This machine: what runs here leaves real files."""
    return {"here": {"kind": "local"}}


async def run(who: httpx2.AsyncClient, **short: Any) -> str:
    """Run something to its end."""
    offers = (await who.post("/v1/offersets", json=short)).json()["offers"]
    id = str(offers[0]["id"])
    await who.post(f"/v1/sessions/{id}/accept")
    async with who.stream("GET", f"/v1/sessions/{id}/logs", params={"follow": "true"}) as logs:
        async for _ in logs.aiter_bytes():
            pass
    return id


async def test_a_session_is_run_again_with_changes_and_its_files_are_listed_and_fetched_in_part(
    ann: httpx2.AsyncClient, bob: httpx2.AsyncClient, callers: Callers, tmp_path: Path
) -> None:
    id = await run(ann, run=["sh", "-c", "printf abcdef > f; mkdir d; printf xy > d/g"], time="5m", name="first")
    listed = (await ann.get(f"/v1/sessions/{id}/results")).json()
    assert {file["path"]: file["size"] for file in listed["items"]} == {"f": 6, "d/g": 2}
    assert listed["size"] == 8
    etag = next(file["etag"] for file in listed["items"] if file["path"] == "f")
    where = f"/v1/sessions/{id}/results/f"
    rest = await ann.get(where, headers={"range": "bytes=4-", "if-match": etag})
    assert (rest.status_code, rest.content, rest.headers["content-range"]) == (206, b"ef", "bytes 4-5/6")
    assert (await ann.get(where, headers={"range": "bytes=4-", "if-match": '"other"'})).status_code == 412
    for part, content in (("0-1", b"ab"), ("2-3", b"cd"), ("-2", b"ef"), ("-9", b"abcdef"), ("4-99", b"ef")):
        answer = await ann.get(where, headers={"range": f"bytes={part}"})
        assert (answer.status_code, answer.content) == (206, content), part
        assert answer.headers["content-length"] == str(len(content))
    wholes = [{"range": f"bytes={part}"} for part in ("9-", "3-2", "-0", "-", "0-1,3-4")]
    for whole in (*wholes, {"range": "bytes=4-", "if-range": '"other"'}):
        answer = await ann.get(where, headers=whole)
        assert (answer.status_code, answer.content) == (200, b"abcdef")
    asked = await ann.post(f"/v1/sessions/{id}/again", json={"cores": 1, "time": "7m", "name": "second"})
    assert asked.status_code == 201
    assert asked.json()["notes"] == ["time: 5 min → 7 min", "name: first → second"]
    assert (asked.json()["name"], asked.json()["offers"][0]["duration"]) == ("second", "PT7M")
    nowhere = await ann.post(f"/v1/sessions/{id}/again", json={"scheduler": {"nice": 5}})
    assert (nowhere.json()["result"], nowhere.json()["reasons"][0]["field"]) == ("NO", "nice")
    assert (await ann.post(f"/v1/sessions/{id}/again", json={"scheduler": {"niece": 5}})).status_code == 400
    refused = await ann.post(f"/v1/sessions/{id}/again", json={"set": {"a": 1}})
    assert (refused.status_code, refused.json()["code"]) == (400, "bad-request")

    paths = ("", "/logs", "/results", "/results/f", "/archive", "/explain")
    assert {path: (await bob.get(f"/v1/sessions/{id}{path}")).status_code for path in paths} == dict.fromkeys(
        paths, 403
    )
    acts = ("cancel", "pause", "resume", "fetched", "again", "extend")
    bodies: dict[str, Any] = {"again": {}, "extend": {"by": "1h"}}
    found = {act: (await bob.post(f"/v1/sessions/{id}/{act}", json=bodies.get(act))).status_code for act in acts}
    assert found == dict.fromkeys(acts, 403)
    assert (await bob.delete(f"/v1/sessions/{id}")).status_code == 403
    assert (await bob.get("/v1/events", params={"session": id})).status_code == 403


async def test_an_operator_cancels_for_others_and_another_person_does_not(
    ann: httpx2.AsyncClient, bob: httpx2.AsyncClient, callers: Callers
) -> None:
    operator = await callers.someone("op", operator=True)
    offers = (await ann.post("/v1/offersets", json={"run": ["sleep", "60"], "time": "5m"})).json()["offers"]
    where = f"/v1/sessions/{offers[0]['id']}"
    await ann.post(f"{where}/accept")
    assert (await bob.post(f"{where}/cancel")).status_code == 403
    assert (await ann.get(where)).json()["phase"] != "CANCELLED"
    assert (await operator.post(f"{where}/cancel")).json()["phase"] == "CANCELLED"
    assert (await operator.delete(where)).status_code == 204
    done = (await operator.get("/v1/audit?noun=session")).json()["items"]
    assert [one["action"] for one in done] == ["session.cancel", "session.delete"]
    assert {(one["person"][:2], one["detail"]["person"][:3]) for one in done} == {("op", "ann")}
