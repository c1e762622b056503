"""Offers that nobody accepted: on the wire, under /v1 and on the pages, with two cores for all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from typing import Any

import httpx2
import pytest

from sublet.booking.model.giving_way import Precedence
from sublet.people.model.person import Person
from sublet.service import Service
from tests.api import documents
from tests.api.conftest import Callers
from tests.api.documents import phase_update
from tests.api.test_pages import token_in, token_on

pytestmark = pytest.mark.anyio
BOTH = {"run": "true", "cores": 2, "time": "2h", "start": "within 5m"}


@pytest.fixture(scope="module")
def platforms() -> dict[str, Any]:
    """One with two cores."""
    return {"trial": {"kind": "memory", "cores": 2, "takes": "10h"}}


@pytest.fixture(autouse=True)
async def nothing_is_held(service: Service) -> None:
    """Give back what the test before left."""
    found = await service.store.read(lambda tx: tx.holds.on("trial", 1000))
    for person in {hold.person for hold in found}:
        await service.offers.reject_all(Person(person))


async def ask(client: httpx2.AsyncClient, **query: str) -> Any:
    """Ask for both cores under /v1."""
    answer = await client.post("/v1/offersets", json=BOTH, params=query)
    assert answer.status_code == 201, answer.text
    return answer.json()


async def test_asking_twice_gets_two_answers_and_the_first_gave_way(ann: httpx2.AsyncClient) -> None:
    first, second = await ask(ann), await ask(ann)
    assert (first["result"], second["result"]) == ("YES", "YES")
    refused = await ann.post(f"/v1/sessions/{first['offers'][0]['id']}/accept")
    assert (refused.status_code, refused.json()["code"]) == (409, "offer-gave-way")
    assert second["id"][:8] in refused.json()["detail"]
    looked = (await ann.get(f"/v1/sessions/{first['offers'][0]['id']}")).json()
    assert (looked["phase"], looked["end"]["kind"], looked["end"]["detail"]) == ("REJECTED", "gave-way", second["id"])


async def test_keeping_offers_names_them_in_the_no_and_one_call_gives_them_back(ann: httpx2.AsyncClient) -> None:
    first = await ask(ann)
    refused = await ask(ann, keep_offers="true")
    assert refused["result"] == "NO"
    [reason] = [reason for reason in refused["reasons"] if reason["kind"] == "urn:held"]
    assert reason["message"].startswith("Your own unaccepted offer holds 2 cores of trial until ")
    held = (await ann.get("/v1/offersets")).json()["items"]
    assert [one["id"] for one in held] == [first["id"]]
    assert (await ann.delete("/v1/offersets")).json() == {"offers": 1}
    assert (await ann.get("/v1/offersets")).json()["items"] == []
    assert (await ask(ann, keep_offers="true"))["result"] == "YES"


async def test_one_set_is_given_back_by_its_asker_alone(callers: Callers) -> None:
    ann, bob = await callers.someone("ann"), await callers.someone("bob")
    found = await ask(ann)
    assert (await bob.delete(f"/v1/offersets/{found['id']}")).status_code == 403
    assert (await bob.delete("/v1/offersets")).json() == {"offers": 0}
    assert (await ann.delete(f"/v1/offersets/{found['id']}")).json() == {"offers": 1}
    assert (await ask(bob))["result"] == "YES"


async def test_on_the_wire_two_asks_of_one_client_both_stand(ann: httpx2.AsyncClient) -> None:
    document = documents.minimal()
    sets = [(await ann.post("/requests", json=document)).json() for _ in range(2)]
    assert [one["result"] for one in sets] == ["YES", "YES"]
    for one in sets:
        found = (await ann.get(f"/sessions/{one['offers'][0]['meta']['uuid']}")).json()
        assert found["phase"] == "OFFERED"
    later = await ask(ann)
    assert later["result"] == "NO", "what was offered on the wire stands until it expires"
    assert any("Your own" in reason["message"] for reason in later["reasons"])
    uuid = sets[0]["offers"][0]["meta"]["uuid"]
    taken = await ann.post(f"/sessions/{uuid}", json=phase_update("ACCEPTED"))
    assert taken.json()["phase"] in ("ACCEPTED", "WAITING", "PREPARING", "RUNNING")
    await ann.post(f"/sessions/{uuid}", json=phase_update("CANCELLED"))


async def test_on_the_wire_offers_give_way_to_who_says_so(ann: httpx2.AsyncClient) -> None:
    first = await ask(ann)
    blocked = (await ann.post("/requests", json=documents.minimal())).json()
    kinds = {message["kind"] for message in blocked["meta"]["messages"]}
    assert "urn:held" in kinds
    assert (await ann.delete(f"/v1/offersets/{blocked['meta']['uuid']}")).status_code == 200
    await ann.post("/requests", params={"keep_offers": "false"}, json=documents.minimal())
    gone = (await ann.get(f"/sessions/{first['offers'][0]['id']}")).json()
    assert gone["phase"] == "REJECTED"
    assert "urn:sublet:end:gave-way" in {message["kind"] for message in gone["meta"]["messages"]}
    assert (await ann.post("/requests", params={"keep_offers": "x"}, json=documents.minimal())).status_code == 400


@pytest.fixture
async def eve(callers: Callers, service: Service) -> httpx2.AsyncClient:
    """Someone who signed in to the pages with a token."""
    client = await callers.with_headers()
    _, secret = await service.people.tokens.make_token(Person("eve"))
    form = {"token": await token_on(client, "/web/login", "/web/login"), "secret": secret}
    assert (await client.post("/web/login", data=form)).status_code == 303
    return client


async def test_changing_the_request_on_the_page_gives_back_what_was_offered_before(
    eve: httpx2.AsyncClient, service: Service
) -> None:
    form = {"what": "command", "script": "true", "cores": "2", "time": "2h", "start": "within 5m"}
    token = await token_on(eve, "/web/ask", "/web/ask")
    first = (await eve.post("/web/ask", data={**form, "token": token})).headers["location"]
    assert "Change the request" in (await eve.get(first)).text
    changed = (await eve.get(f"/web/ask?from={first.rpartition('/')[2]}")).text
    hidden = re.search(r'name="instead_of" value="([0-9a-f-]+)"', changed)
    assert hidden
    again = {**form, "cores": "1", "token": token_in(changed, "/web/ask"), "instead_of": hidden[1]}
    second = (await eve.post("/web/ask", data=again)).headers["location"]
    assert "Held for you until" in (await eve.get(second)).text
    old = unescape((await eve.get(first)).text)
    assert "These offers gave way to a later request" in old
    assert f'href="{second}"' in old
    held = await service.store.read(lambda tx: tx.holds.of("eve"))
    assert [hold.offerset for hold in held] == [second.rpartition("/")[2]]


async def test_offers_are_given_back_on_the_page(eve: httpx2.AsyncClient, service: Service) -> None:
    token = await token_on(eve, "/web/ask", "/web/ask")
    document = {"token": token, "document": "run: 'true'\ncores: 2\ntime: 2h\nstart: within 5m\n"}
    where = (await eve.post("/web/ask", data=document)).headers["location"]
    action = f"{where}/reject"
    assert (await eve.post(action, data={"token": "wrong"})).status_code == 403
    answer = await eve.post(action, data={"token": await token_on(eve, where, action)})
    assert (answer.status_code, answer.headers["location"]) == (303, where)
    assert "You gave these offers back" in (await eve.get(where)).text
    assert (await eve.post(f"{where}/nothing", data={"token": "x"})).status_code == 404
    person = Person("eve")
    asked = await service.asking.read(json.dumps(BOTH).encode(), "application/json", person)
    await service.asking.ask(person, replace(asked, precedence=Precedence(firm=True)))
    where = (await eve.post("/web/ask", data=document)).headers["location"]
    refused = (await eve.get(where)).text
    assert "Your own unaccepted offer holds 2 cores of trial" in refused
    assert "your other offers given back, by the button above" in refused
    assert "sublet reject" not in refused
    action = f"{where}/reject-all"
    answer = await eve.post(action, data={"token": token_in(refused, action)})
    assert answer.headers["location"] == f"/web/ask?from={where.rpartition('/')[2]}"
    assert await service.offers.open_offers(person) == []


async def test_asking_again_on_the_page_is_a_yes_each_time(eve: httpx2.AsyncClient) -> None:
    token = await token_on(eve, "/web/ask", "/web/ask")
    document = {"token": token, "document": "run: 'true'\ncores: 2\ntime: 2h\nstart: within 5m\n"}
    for _ in range(3):
        where = (await eve.post("/web/ask", data=document)).headers["location"]
        assert "Held for you until" in (await eve.get(where)).text


async def test_who_goes_away_before_the_answer_comes_has_nothing_held(callers: Callers, service: Service) -> None:
    _, secret = await service.people.tokens.make_token(Person("gone"))
    headers = [(b"authorization", f"Bearer {secret}".encode()), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/v1/offersets", "query_string": b"", "headers": headers}
    scope |= {"http_version": "1.1", "scheme": "http", "server": ("broker.test", 80), "root_path": ""}
    body = json.dumps(BOTH).encode()
    for key in (None, b"again"):
        heard = iter([{"type": "http.request", "body": body, "more_body": False}])
        keyed = [*headers, (b"idempotency-key", key)] if key else headers

        async def receive(heard: Iterator[Any] = heard) -> Any:
            return next(heard, {"type": "http.disconnect"})

        async def send(_: Any) -> None:
            """Nobody hears it."""

        await callers.app({**scope, "headers": keyed}, receive, send)
        held = await service.offers.open_offers(Person("gone"))
        assert bool(held) is bool(key), "who has a key may ask again and get the same"
