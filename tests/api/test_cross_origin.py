"""Pages of other sites call the service where its operator lets them: by a token, never by a cookie."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from xml.etree import ElementTree

import httpx2
import pytest

from sublet.app import open_service
from sublet.kernel.errors import BadSettings
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.server.app import make_app
from sublet.service import Service
from tests.api.conftest import HOST

pytestmark = pytest.mark.anyio
PORTAL, EVIL = "https://portal.example.org", "https://portal.example.org.evil.org"
ASKS = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
ALLOWED = "access-control-allow-origin"


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    settings = Settings.load(tmp_path_factory.mktemp("home"), mode="gateway", origins=[PORTAL], platforms={})
    async with open_service(settings, loop=False) as opened:
        yield opened


@pytest.fixture
async def client(service: Service) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=make_app(service, "owner"))
    async with httpx2.AsyncClient(transport=transport, base_url=HOST) as client:
        yield client


async def test_a_named_origin_may_call_by_a_token_and_others_may_not(
    client: httpx2.AsyncClient, service: Service
) -> None:
    preflight = await client.options("/v1/offersets", headers={"origin": PORTAL, **ASKS})
    assert (preflight.status_code, preflight.headers[ALLOWED]) == (200, PORTAL)
    assert "POST" in preflight.headers["access-control-allow-methods"]
    assert "access-control-allow-credentials" not in preflight.headers, "cookies are never sent along"
    for origin in (EVIL, "null", "http://portal.example.org"):
        refused = await client.options("/v1/offersets", headers={"origin": origin, **ASKS})
        assert (refused.status_code, refused.headers.get(ALLOWED)) == (400, None)
        assert ALLOWED not in (await client.get("/health", headers={"origin": origin})).headers
    _, secret = await service.people.tokens.make_token(Person("ann@x.org"))
    head = {"origin": PORTAL, "authorization": f"Bearer {secret}"}
    answer = await client.get("/v1/whoami", headers=head)
    assert (answer.status_code, answer.headers[ALLOWED]) == (200, PORTAL)
    assert "Origin" in answer.headers["vary"]
    assert "Location" in answer.headers["access-control-expose-headers"]
    unknown = await client.get("/v1/whoami", headers={"origin": PORTAL})
    assert (unknown.status_code, unknown.headers[ALLOWED]) == (401, PORTAL), "a page can read why not"


@pytest.mark.parametrize("path", ["/web/", "/web/login", "/connect/x/"])
async def test_pages_and_ways_in_are_for_no_other_site(client: httpx2.AsyncClient, path: str) -> None:
    assert ALLOWED not in (await client.get(path, headers={"origin": PORTAL})).headers
    assert ALLOWED not in (await client.options(path, headers={"origin": PORTAL, **ASKS})).headers


@pytest.mark.parametrize(
    "origin", ["portal.example.org", "https://portal.example.org/", "null", "https://*.org", "https://A.org"]
)
def test_what_is_no_origin_is_refused_in_the_settings(tmp_path: Path, origin: str) -> None:
    with pytest.raises(BadSettings, match="an origin is a scheme and a host"):
        Settings.load(tmp_path, origins=[origin])


async def test_vosi_says_what_there_is_and_whether_it_is_up_to_everybody(
    client: httpx2.AsyncClient, service: Service
) -> None:
    told = await client.get("/capabilities")
    assert (told.status_code, told.headers["content-type"]) == (200, "text/xml; charset=utf-8")
    root = ElementTree.fromstring(told.content)
    assert root.tag == "{http://www.ivoa.net/xml/VOSICapabilities/v1.0}capabilities"
    urls = {each.get("standardID"): each.findtext("interface/accessURL") for each in root}
    assert urls["ivo://ivoa.net/std/VOSI#availability"] == f"{HOST}/availability"
    space = "{http://www.ivoa.net/xml/VOSIAvailability/v1.0}"
    up = ElementTree.fromstring((await client.get("/availability")).content)
    assert (up.tag, up.findtext(f"{space}available")) == (f"{space}availability", "true")
    service.loop_state.trouble = "the disk is full"
    down = ElementTree.fromstring((await client.get("/availability")).content)
    service.loop_state.trouble = ""
    assert (down.findtext(f"{space}available"), down.findtext(f"{space}note")) == ("false", "the disk is full")
