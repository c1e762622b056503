"""No page of another site can make someone's browser do anything here, and no page of ours can be dressed up."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from types import MappingProxyType

import httpx2
import pytest
from starlette.routing import Mount, Route

from sublet.people.model.person import Person
from sublet.service import Service
from sublet.web.entry import form_token, issue_code
from sublet.web.pages import HEADERS
from tests.api.conftest import HOST, Callers

pytestmark = pytest.mark.anyio
SOCKET_ONLY = "/web/code"
OTHER_CHANGES = {"/access/requests/{id}/{change}": ("grant", "refuse")}


def routes(callers: Callers) -> list[Route]:
    """Every page that there is."""
    (mount,) = (one for one in callers.app.routes if isinstance(one, Mount) and one.path == "/web")
    return [route for route in mount.app.app.routes if isinstance(route, Route)]  # type: ignore[attr-defined]


def addresses(route: Route, names: Mapping[str, str] = MappingProxyType({"number": "1"})) -> list[str]:
    """A route's addresses: one for each change that can be made there; of things with these names."""
    changes = getattr(sys.modules[route.endpoint.__module__], "CHANGES", None) or OTHER_CHANGES.get(route.path, ("x",))
    paths = [route.path.replace("{change}", change) for change in changes] if "{change}" in route.path else [route.path]
    return ["/web" + re.sub(r"{(\w+)(:\w+)?}", lambda found: names.get(found[1], "x"), path) for path in paths]


@pytest.fixture
async def visitor(callers: Callers, service: Service) -> httpx2.AsyncClient:
    """Someone who is signed in on the pages."""
    client = await callers.with_headers()
    await client.get("/web/login", params={"code": issue_code(service, Person("ann", operator=True))})
    assert (await client.get("/web/")).status_code == 200
    return client


async def test_every_form_is_refused_from_elsewhere_and_without_its_proof(
    callers: Callers, visitor: httpx2.AsyncClient, service: Service
) -> None:
    posts = [one for route in routes(callers) if "POST" in (route.methods or ()) for one in addresses(route)]
    assert len(posts) >= 8
    cookie = visitor.cookies["sublet_web"]
    for path in posts:
        own = {form_token(service, cookie, path), form_token(service, "", path)}
        attacks: list[tuple[dict[str, str], str]] = [
            ({}, ""),
            ({}, "0" * 64),
            ({}, form_token(service, cookie, "/web/x")),
        ]
        for proof in own:  # even with the right proof
            attacks += [
                ({"origin": "https://evil.example"}, proof),
                ({"origin": f"{HOST}.evil.example"}, proof),
                ({"sec-fetch-site": "cross-site"}, proof),
                ({"sec-fetch-site": "same-site"}, proof),
            ]
        for headers, proof in attacks:
            answer = await visitor.post(path, data={"token": proof}, headers=headers)
            wanted = 404 if path == SOCKET_ONLY else 403
            assert answer.status_code == wanted, (path, headers, answer.status_code)
        plain = await visitor.post(path, content=b"{}", headers={"content-type": "text/plain"})
        assert plain.status_code in (403, 404, 415), path


async def test_a_page_that_is_only_looked_at_changes_nothing_by_post(
    callers: Callers, visitor: httpx2.AsyncClient
) -> None:
    posts = {one for route in routes(callers) if "POST" in (route.methods or ()) for one in addresses(route)}
    looked_at = [one for route in routes(callers) if "GET" in (route.methods or ()) for one in addresses(route)]
    for path in looked_at:
        if path not in posts:
            assert (await visitor.post(path, data={})).status_code in (403, 404, 405), path


async def test_every_page_carries_the_headers_that_guard_it(callers: Callers, visitor: httpx2.AsyncClient) -> None:
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    for part in ("default-src 'self'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'"):
        assert part in policy
    for route in routes(callers):
        for method in route.methods or ():
            answer = await visitor.request(method, addresses(route)[0])
            for name, value in HEADERS.items():
                assert answer.headers[name] == value, (route.path, name)
            assert answer.headers["cache-control"] == "no-store", route.path


async def test_no_page_has_a_script_or_style_of_its_own(callers: Callers, visitor: httpx2.AsyncClient) -> None:
    for route in routes(callers):
        if "GET" not in (route.methods or ()):
            continue
        text = (await visitor.get(addresses(route)[0])).text
        assert not re.search(r"<script(?![^>]* src=)", text), route.path
        assert not re.search(r"<style|\sstyle=|\son[a-z]+=|javascript:", text), route.path


async def test_cookies_open_neither_v1_nor_the_broker(callers: Callers, visitor: httpx2.AsyncClient) -> None:
    cookie = {"cookie": f"sublet_web={visitor.cookies['sublet_web']}"}
    for method, path in (("GET", "/v1/whoami"), ("GET", "/v1/sessions"), ("POST", "/v1/tokens"), ("POST", "/requests")):
        assert (await visitor.request(method, path, headers=cookie, json={})).status_code == 401, path
