"""A broker asks another for its people: as the person that they are there, for one request, and nothing else."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from jwcrypto.jwk import JWKSet
from jwcrypto.jwt import JWT

from sublet.app import open_service
from sublet.kernel.settings import Settings
from sublet.people.model.assertion import Errand
from sublet.server.app import make_app
from sublet.service import Service
from tests.api.conftest import HOST
from tests.contract.services import allow
from tests.iam import AUDIENCE, Iam, iam_server
from tests.policy_server import json_server

pytestmark = pytest.mark.anyio
ABOVE = "https://aggregator.example.org"
WISH = {"image": "docker://busybox", "time": "1h", "cores": 1}


class Site:
    """A broker below, and the aggregator that asks it."""

    def __init__(self, above: Service, below: Service, client: httpx2.AsyncClient, iam: Iam) -> None:
        self.above, self.below, self.client, self.iam = above, below, client, iam

    async def header(self, method: str, path: str, person: str = "ann@x.org", broker: str = AUDIENCE) -> dict[str, str]:
        token = await self.above.people.assertions.make(person, broker, Errand(method, path))
        return {"authorization": f"Bearer {token}"}

    async def send(self, method: str, path: str, **more: Any) -> httpx2.Response:
        return await self.client.request(method, path, headers=await self.header(method, path), **more)


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    home = tmp_path_factory.mktemp
    with iam_server() as iam:
        trusted = {"issuer": iam.issuer, "audiences": [AUDIENCE, ABOVE]}
        own = {"mode": "gateway", "url": ABOVE, "issuers": {"science": trusted}}
        async with AsyncExitStack() as stack:
            above = await stack.enter_async_context(open_service(Settings.load(home("above"), **own), loop=False))
            keys = stack.enter_context(json_server(above.people.assertions.keys()))
            broker = {"issuer": ABOVE, "jwks": keys, "audiences": [AUDIENCE], "is_broker": True, "speaks_for": ["iam"]}
            settings = {"mode": "gateway", "url": AUDIENCE, "platforms": {"trial": {"kind": "memory", "nodes": 8}}}
            issuers = {"iam": trusted, "above": broker}
            loaded = Settings.load(home("below"), issuers=issuers, **settings)
            below = await stack.enter_async_context(open_service(loaded, loop=False))
            transport = httpx2.ASGITransport(app=make_app(below, "owner"))
            client = await stack.enter_async_context(httpx2.AsyncClient(transport=transport, base_url=HOST, timeout=60))
            token = iam.token(email="ann@x.org", email_verified=True, groups=["/srcnet"])
            assert (await above.people.issuers.bearer(token, Errand("GET", "/"))).name == "ann@x.org"
            yield Site(above, below, client, iam)


async def test_a_person_of_an_iam_is_the_same_person_at_the_broker_below_with_their_groups(site: Site) -> None:
    await allow(site.below, "group:iam:/srcnet")
    through = (await site.send("GET", "/v1/whoami")).json()
    token = site.iam.token(email="ann@x.org", email_verified=True)
    direct = await site.client.get("/v1/whoami", headers={"authorization": f"Bearer {token}"})
    assert through["person"] == direct.json()["person"] == "ann@x.org"
    offers = (await site.send("POST", "/v1/offersets", json=WISH)).json()["offers"]
    session = (await site.send("POST", f"/v1/sessions/{offers[0]['id']}/accept")).json()
    mine = (await site.client.get("/v1/sessions", headers={"authorization": f"Bearer {token}"})).json()["items"]
    assert session["id"] in [each["id"] for each in mine]


async def test_such_a_token_is_for_one_request_of_one_broker_and_changes_something_once(site: Site) -> None:
    post = await site.header("POST", "/v1/offersets")
    assert (await site.client.post("/v1/offersets", headers=post, json=WISH)).status_code in (200, 201)
    again = await site.client.post("/v1/offersets", headers=post, json=WISH)
    assert (again.status_code, "counts once" in again.text) == (401, True)
    for method, path in (("GET", "/v1/offersets"), ("POST", "/v1/tokens"), ("DELETE", "/v1/offersets")):
        other = await site.client.request(method, path, headers=post, json={})
        assert (other.status_code, "for another request" in other.text) == (401, True), other.text
    look = await site.header("GET", "/v1/sessions?limit=1")
    assert (await site.client.get("/v1/sessions?limit=1", headers=look)).status_code == 200
    assert (await site.client.get("/v1/sessions?limit=1", headers=look)).status_code == 200, (
        "to look again harms nobody"
    )
    assert (await site.client.get("/v1/sessions", headers=look)).status_code == 401
    elsewhere = await site.header("GET", "/v1/whoami", broker="https://other.example.org")
    answer = await site.client.get("/v1/whoami", headers=elsewhere)
    assert (answer.status_code, "for another audience" in answer.text) == (401, True)


async def test_a_broker_speaks_for_no_issuer_that_it_was_not_let_speak_for(site: Site) -> None:
    header = await site.header("GET", "/v1/whoami", person="stranger")
    who = (await site.client.get("/v1/whoami", headers=header)).json()
    assert who["person"].startswith("above:"), "someone without an identity at an issuer is known by the broker's name"


async def test_its_tokens_are_checked_by_the_keys_that_it_publishes_and_hold_nothing_of_the_persons(site: Site) -> None:
    transport = httpx2.ASGITransport(app=make_app(site.above, "owner"))
    async with httpx2.AsyncClient(transport=transport, base_url=ABOVE) as client:
        told = (await client.get("/.well-known/openid-configuration")).json()
        assert told["issuer"] == ABOVE
        keys = await client.get(urlsplit(told["jwks_uri"]).path)
    assert "d" not in keys.json()["keys"][0]
    token = (await site.header("GET", "/v1/whoami"))["authorization"].removeprefix("Bearer ")
    claims: Any = JWT(jwt=token, key=JWKSet.from_json(keys.text), expected_type="JWS", algs=["ES256"])
    read = json.loads(claims.claims)
    assert (read["aud"], read["htm"], read["htu"], read["act"]) == (AUDIENCE, "GET", "/v1/whoami", {"sub": ABOVE})
    assert read["exp"] - time.time() <= 60
    assert (read["sub"], read["idp"], read["groups"]) == ("u-ann", site.iam.issuer, ["/srcnet"])
