"""Every way to start something keeps to its `Idempotency-Key`: what is sent again does nothing anew."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from uuid import uuid4

import httpx2
import pytest

from sublet.server.app import openapi_document
from tests.api import documents
from tests.api.documents import phase_update

pytestmark = pytest.mark.anyio
OVER = {"COMPLETED", "FAILED", "CANCELLED"}


def new_key() -> dict[str, str]:
    return {"idempotency-key": str(uuid4())}


async def count_sessions(client: httpx2.AsyncClient) -> int:
    items = (await client.get("/v1/sessions")).json()["items"]
    return sum(item["phase"] not in {"OFFERED", "REJECTED", "EXPIRED"} for item in items)


async def wait_for_end(client: httpx2.AsyncClient, uuid: str) -> None:
    async with asyncio.timeout(30):
        while (await client.get(f"/v1/sessions/{uuid}")).json()["phase"] not in OVER:  # noqa: ASYNC110 (it runs elsewhere)
            await asyncio.sleep(0.05)


async def test_a_direct_request_that_is_sent_again_is_one_session(ann: httpx2.AsyncClient) -> None:
    headers = new_key()
    answers = await asyncio.gather(*(ann.post("/direct", json=documents.minimal(), headers=headers) for _ in range(4)))
    [uuid] = {answer.json()["meta"]["uuid"] for answer in answers}
    assert {answer.status_code for answer in answers} == {303}
    await wait_for_end(ann, uuid)
    late = await ann.post("/direct", json=documents.minimal(), headers=headers)
    assert (late.status_code, late.json()["meta"]["uuid"], late.json()["phase"]) == (303, uuid, "COMPLETED")
    other = await ann.post("/direct", json=documents.full(), headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")
    assert f"The idempotency key {headers['idempotency-key']} was already used" in other.json()["detail"]
    assert await count_sessions(ann) == 1
    assert (await ann.post("/direct", json=documents.minimal(), headers=new_key())).json()["meta"]["uuid"] != uuid


@pytest.mark.parametrize("headers", [{}, new_key()], ids=["without", "under a key"])
async def test_an_offer_that_is_accepted_again_after_its_end_is_the_session(
    ann: httpx2.AsyncClient, bob: httpx2.AsyncClient, headers: dict[str, str]
) -> None:
    offers = (await ann.post("/v1/offersets", json={"run": ["true"], "cores": 1})).json()["offers"]
    uuid = offers[0]["id"]
    first = await ann.post(f"/v1/sessions/{uuid}/accept", headers=headers)
    assert first.status_code == 200
    await wait_for_end(ann, uuid)
    again = await ann.post(f"/v1/sessions/{uuid}/accept", headers=headers)
    assert (again.status_code, again.json()["id"], again.json()["phase"]) == (200, uuid, "COMPLETED")
    standard = await ann.post(f"/sessions/{uuid}", json=phase_update("ACCEPTED"), headers=headers)
    assert (standard.status_code, standard.json()["phase"]) == (200, "COMPLETED")
    assert (await bob.post(f"/v1/sessions/{uuid}/accept", headers=headers)).status_code == 403
    assert await count_sessions(ann) == 1


async def test_a_key_stays_with_the_offer_that_was_accepted_under_it(ann: httpx2.AsyncClient) -> None:
    headers = new_key()
    sets = [(await ann.post("/v1/offersets", json={"run": ["true"], "cores": 1})).json() for _ in range(2)]
    first, second = (found["offers"][0]["id"] for found in sets)
    both = await asyncio.gather(*(ann.post(f"/v1/sessions/{first}/accept", headers=headers) for _ in range(2)))
    assert [answer.status_code for answer in both] == [200, 200]
    for refused in (
        await ann.post(f"/v1/sessions/{second}/accept", headers=headers),
        await ann.post(f"/sessions/{second}", json=phase_update("ACCEPTED"), headers=headers),
    ):
        assert (refused.status_code, refused.json()["code"]) == (422, "key-reused")
    assert (await ann.get(f"/v1/sessions/{second}")).json()["phase"] == "OFFERED"


async def test_what_was_declined_or_never_accepted_can_not_be_accepted_by_repeating(ann: httpx2.AsyncClient) -> None:
    offers = (await ann.post("/v1/offersets", json={"run": ["true"], "cores": 1})).json()["offers"]
    assert (await ann.post(f"/v1/sessions/{offers[0]['id']}/cancel")).status_code == 200
    assert (await ann.post(f"/v1/sessions/{offers[0]['id']}/accept")).status_code == 409


async def test_once_more_under_a_key_is_once_more_once(ann: httpx2.AsyncClient) -> None:
    uuid = (await ann.post("/direct", json={"run": ["true"], "cores": 1})).json()["meta"]["uuid"]
    headers = new_key()
    sets = [await ann.post(f"/v1/sessions/{uuid}/again", json={"cores": 2}, headers=headers) for _ in range(2)]
    assert {answer.status_code for answer in sets} == {201}
    assert len({answer.json()["id"] for answer in sets}) == 1
    other = await ann.post(f"/v1/sessions/{uuid}/again", json={"cores": 3}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")


async def test_under_a_key_whose_offers_nobody_took_it_is_asked_anew(ann: httpx2.AsyncClient) -> None:
    headers, request = new_key(), {"run": ["true"], "cores": 1}
    sets = []
    for _ in range(2):
        sets.append((await ann.post("/v1/offersets", json=request, headers=headers)).json()["id"])
        assert (await ann.delete(f"/v1/offersets/{sets[-1]}")).json()["offers"] > 0
    assert len(set(sets)) == 2
    other = await ann.post("/v1/offersets", json=request | {"cores": 2}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")
    assert (await ann.get(f"/v1/offersets/{sets[0]}")).status_code == 200


async def test_under_a_key_whose_answer_was_no_it_is_asked_anew(ann: httpx2.AsyncClient) -> None:
    headers, request = new_key(), {"run": ["true"], "cores": 500}
    answers = [(await ann.post("/v1/offersets", json=request, headers=headers)).json() for _ in range(2)]
    assert {answer["result"] for answer in answers} == {"NO"}
    assert len({answer["id"] for answer in answers}) == 2


async def test_a_session_that_was_cancelled_is_not_started_again_under_its_key(ann: httpx2.AsyncClient) -> None:
    headers = new_key()
    uuid = (await ann.post("/direct", json=documents.minimal(), headers=headers)).json()["meta"]["uuid"]
    await ann.post(f"/v1/sessions/{uuid}/cancel")
    again = await ann.post("/direct", json=documents.minimal(), headers=headers)
    assert (again.status_code, again.json()["meta"]["uuid"]) == (303, uuid)


async def find_end(client: httpx2.AsyncClient, uuid: str) -> datetime:
    return datetime.fromisoformat((await client.get(f"/v1/sessions/{uuid}")).json()["until"])


async def test_a_session_that_is_extended_again_under_a_key_is_extended_once(ann: httpx2.AsyncClient) -> None:
    asked = (await ann.post("/v1/offersets", json={"run": ["sleep", "60"], "cores": 1, "time": "1h"})).json()
    uuid = asked["offers"][0]["id"]
    await ann.post(f"/v1/sessions/{uuid}/accept")
    before, headers = await find_end(ann, uuid), new_key()
    address = f"/v1/sessions/{uuid}/extend"
    answers = await asyncio.gather(*(ann.post(address, json={"by": "10m"}, headers=headers) for _ in range(3)))
    assert {answer.status_code for answer in answers} == {200}
    assert await find_end(ann, uuid) == before + timedelta(minutes=10)
    delta = {"kind": "uri:integer-delta-update", "path": "schedule.available.duration", "delta": 10, "units": "minutes"}
    for _ in range(2):  # also as IVOA's standard says it
        standard = await ann.post(f"/sessions/{uuid}", json=delta, headers=headers)
        assert standard.status_code == 200, standard.text
    assert await find_end(ann, uuid) == before + timedelta(minutes=10)
    other = await ann.post(address, json={"by": "20m"}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")
    refused = new_key()
    assert (await ann.post(address, json={"by": "9999d"}, headers=refused)).status_code in (400, 409)
    assert (await ann.post(address, json={"by": "5m"}, headers=refused)).status_code == 200, "it came to nothing"
    await ann.post(f"/v1/sessions/{uuid}/cancel")
    assert (await ann.post(address, json={"by": "10m"}, headers=headers)).json()["phase"] == "CANCELLED"


async def test_a_booking_that_is_asked_for_again_under_a_key_is_one_booking(ann: httpx2.AsyncClient) -> None:
    headers = new_key()
    wanted = {"every": "daily 02:00-03:00 UTC", "count": 2, "request": {"run": ["true"], "cores": 1}}
    answers = await asyncio.gather(*(ann.post("/v1/bookings", json=wanted, headers=headers) for _ in range(3)))
    assert {answer.status_code for answer in answers} == {201}
    [id] = {answer.json()["id"] for answer in answers}
    assert (await ann.post(f"/v1/bookings/{id}/accept", json={})).json()["state"] == "booked"
    late = (await ann.post("/v1/bookings", json=wanted, headers=headers)).json()
    assert (late["id"], late["state"], await count_sessions(ann)) == (id, "booked", 2)
    other = await ann.post("/v1/bookings", json=wanted | {"count": 3}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")
    assert (await ann.post("/v1/bookings", json=wanted, headers=new_key())).json()["id"] != id


async def test_a_key_that_is_too_long_is_refused(ann: httpx2.AsyncClient) -> None:
    refused = await ann.post("/direct", json=documents.minimal(), headers={"idempotency-key": "k" * 300})
    assert (refused.status_code, "255 characters" in refused.json()["detail"]) == (400, True)


@pytest.mark.parametrize("key", ["", "  "])
async def test_an_empty_key_is_refused_before_anything_is_started(ann: httpx2.AsyncClient, key: str) -> None:
    before = await count_sessions(ann)
    for address in ("/direct", "/v1/offersets"):
        refused = await ann.post(address, json={"run": ["true"]}, headers={"idempotency-key": key})
        assert (refused.status_code, "the Idempotency-Key is empty" in refused.json()["detail"]) == (400, True)
    assert await count_sessions(ann) == before


def test_the_description_tells_of_a_key_that_was_used_before_wherever_a_key_is_taken() -> None:
    taken, told, validation = set(), set(), set()
    for path, methods in openapi_document()["paths"].items():
        for method, operation in methods.items():
            names = {one["name"] for one in operation.get("parameters", ())}
            answer = operation["responses"].get("422", {})
            taken |= {(method, path)} if "Idempotency-Key" in names else set()
            told |= {(method, path)} if "application/problem+json" in answer.get("content", {}) else set()
            validation |= {(method, path)} if "application/json" in answer.get("content", {}) else set()
    assert len(taken) >= 13
    assert told == taken
    assert not validation  # FastAPI's own words, which nobody ever gets: that is a 400 here
