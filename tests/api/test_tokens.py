"""Tokens of a gateway: for no more than their scope, no longer than they should, and one for a single session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import httpx2
import pytest

from sublet.app import open_service
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.server.app import make_app
from sublet.service import Service
from tests.api.conftest import Callers
from tests.clocks import LateClock
from tests.contract.services import allow

pytestmark = pytest.mark.anyio
IMAGE = {"image": "docker.io/library/alpine:3.20", "run": ["true"], "time": "1m"}


@pytest.fixture(scope="module")
def clock() -> LateClock:
    return LateClock()


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory, clock: LateClock) -> AsyncIterator[Service]:
    """A gateway that plays."""
    platform = {"kind": "memory", "nodes": 100, "cores": 16, "memory": "16GiB", "takes": "0.1s"}
    settings = Settings.load(tmp_path_factory.mktemp("home"), mode="gateway", platforms={"memory": platform})
    async with open_service(settings, now=clock) as opened:
        await allow(opened)
        yield opened


async def shows(callers: Callers, secret: str) -> httpx2.AsyncClient:
    """Someone who shows this token."""
    return await callers.with_headers({"authorization": f"Bearer {secret}"})


async def made(client: httpx2.AsyncClient, **wish: object) -> dict[str, str]:
    """A token that this one made."""
    answer = await client.post("/v1/tokens", json=wish)
    assert answer.status_code == 201, answer.text
    said: dict[str, str] = answer.json()
    return said


async def refused(answer: httpx2.Response, code: str = "out-of-scope") -> None:
    assert (answer.status_code, answer.json()["code"]) == (403, code), answer.text


async def offered(client: httpx2.AsyncClient) -> str:
    answer = await client.post("/v1/offersets", json=IMAGE)
    assert answer.status_code == 201, answer.text
    offer: str = answer.json()["offers"][0]["id"]
    return offer


async def test_a_token_is_for_its_scope_and_makes_none_for_more(ann: httpx2.AsyncClient, callers: Callers) -> None:
    read = await shows(callers, (await made(ann, scope=["read"]))["token"])
    run = await shows(callers, (await made(ann, scope=["run"], expires="7d"))["token"])
    manage = await shows(callers, (await made(ann, scope=["manage"]))["token"])

    assert (await read.get("/v1/whoami")).json()["scope"] == ["read"]
    assert (await read.get("/v1/sessions")).status_code == 200
    await refused(await read.post("/v1/offersets", json=IMAGE))
    await refused(await read.post("/direct", json=IMAGE))
    assert (await run.post("/direct", json={})).status_code == 400
    await refused(await read.post("/v1/tokens", json={}))

    offer = await offered(run)
    await refused(await read.post(f"/v1/sessions/{offer}/accept"))
    assert (await run.post(f"/v1/sessions/{offer}/accept")).status_code == 200
    await refused(await run.post("/v1/tokens", json={"scope": ["read"]}))
    await refused(await run.delete("/v1/tokens/some"))

    within = await made(manage, scope=["run"])
    assert within["scope"] == ["run"]
    assert (await made(manage))["scope"] == ["manage"]  # its own, where nothing is said
    assert (await ann.post("/v1/tokens", json={"scope": ["root"]})).json()["code"] == "bad-scope"


async def test_a_token_expires_and_outlives_neither_its_maker_nor_the_longest(
    ann: httpx2.AsyncClient, callers: Callers, service: Service
) -> None:
    week = await made(ann, expires="7d")
    child = await made(await shows(callers, week["token"]), expires="30d")
    assert child["expires"] == week["expires"]
    assert (await ann.post("/v1/tokens", json={"expires": "1000d"})).status_code == 400
    token, _ = await service.people.tokens.make_token(Person("someone"))
    assert token.expires == token.created + timedelta(days=90)


async def test_a_revoked_token_is_worthless_at_once_and_its_last_use_is_listed(
    ann: httpx2.AsyncClient, callers: Callers, service: Service
) -> None:
    token = await made(ann, note="laptop")
    client = await shows(callers, token["token"])
    assert (await client.get("/v1/whoami")).status_code == 200
    listed = {one["id"]: one for one in (await ann.get("/v1/tokens")).json()["items"]}[token["id"]]
    assert listed["used"] is not None
    assert listed["token"] == ""
    elsewhere = make_app(service, "owner")  # as another process has it
    transport = httpx2.ASGITransport(app=elsewhere)
    async with httpx2.AsyncClient(transport=transport, base_url="http://b", headers=client.headers) as other:
        assert (await ann.delete(f"/v1/tokens/{token['id']}")).status_code == 204
        refused = await client.get("/v1/whoami")
        assert (refused.status_code, refused.json()["code"]) == (401, "not-signed-in")
        assert refused.json()["detail"] == "This token is unknown, was revoked, or has expired.", "there was one"
        assert (await other.get("/v1/whoami")).status_code == 401
    without = await callers.with_headers({})
    assert (await without.get("/v1/whoami")).json()["detail"] == "This needs a token."
    entries = await service.store.read(lambda tx: tx.audit.list(noun="token", name=token["id"]))
    assert [entry.action for entry in entries] == ["token.make", "token.revoke"]
    assert token["token"] not in str(entries)


async def test_only_an_operator_revokes_anothers(
    ann: httpx2.AsyncClient, bob: httpx2.AsyncClient, callers: Callers
) -> None:
    token = await made(ann)
    assert (await bob.delete(f"/v1/tokens/{token['id']}")).status_code == 404
    operator = await callers.someone("op", operator=True)
    assert (await operator.delete(f"/v1/tokens/{token['id']}")).status_code == 204


async def test_a_sessions_token_is_for_that_session_and_nothing_else(
    ann: httpx2.AsyncClient, callers: Callers, service: Service, clock: LateClock
) -> None:
    first, other = await offered(ann), await offered(ann)
    accepted = (await ann.post(f"/v1/sessions/{first}/accept")).json()
    await ann.post(f"/v1/sessions/{other}/accept")
    own = await shows(callers, accepted["token"])
    assert accepted["token"].startswith("sublet_")
    assert (await ann.get(f"/v1/sessions/{first}")).json()["token"] == ""

    for path in ("", "/explain", "/logs", "/results", "/archive"):
        answer = await own.get(f"/v1/sessions/{first}{path}")
        assert answer.status_code == 200, (path, answer.text)
        await refused(await own.get(f"/v1/sessions/{other}{path}"))
    assert (await own.get(f"/v1/sessions/{first[:8]}")).json()["id"] == first
    assert (await own.get(f"/sessions/{first}")).status_code == 200
    assert (await own.get("/v1/events", params={"session": first})).status_code == 200
    for answer in (
        await own.get("/v1/events"),
        await own.get("/v1/events", params={"session": other}),
        await own.get("/v1/sessions"),
        await own.get(f"/sessions/{other}"),
        await own.get("/v1/sessions/-"),
        await own.get("/v1/whoami"),
        await own.get("/v1/tokens"),
        await own.post("/v1/tokens", json={"session": first}),
        await own.post("/v1/offersets", json=IMAGE),
        await own.post(f"/sessions/{first}", json={}),
        await own.post(f"/v1/sessions/{other}/cancel"),
        await own.delete(f"/v1/sessions/{first}"),
    ):
        await refused(answer)
    assert (await own.post(f"/v1/sessions/{first}/cancel")).status_code in (200, 409)

    assert first not in str((await ann.get("/v1/tokens")).json())  # they would hide the others
    again = await shows(callers, (await made(ann, session=first))["token"])
    assert (await again.get(f"/v1/sessions/{first}")).status_code == 200

    await ann.get(f"/v1/sessions/{other}/logs", params={"follow": True})
    kept = await shows(callers, (await made(ann, session=other))["token"])
    clock.later = service.settings.keep + timedelta(minutes=1)
    try:
        assert await service.people.tokens.bearer(kept.headers["authorization"].partition(" ")[2]) is None
    finally:
        clock.later = timedelta()
    assert (await ann.delete(f"/v1/sessions/{other}")).status_code == 204
    assert (await kept.get(f"/v1/sessions/{other}")).status_code == 401


async def test_nobody_makes_a_token_for_anothers_session(ann: httpx2.AsyncClient, bob: httpx2.AsyncClient) -> None:
    await refused(await bob.post("/v1/tokens", json={"session": await offered(ann)}), "not-yours")


async def test_a_scoped_token_does_not_open_the_pages(ann: httpx2.AsyncClient, callers: Callers) -> None:
    anyone = await callers.with_headers()
    form = (await anyone.get("/web/login")).text
    proof = form.partition('name="token" value="')[2].partition('"')[0]
    scoped = (await made(ann, scope=["read"]))["token"]
    answer = await anyone.post("/web/login", data={"token": proof, "secret": scoped})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
