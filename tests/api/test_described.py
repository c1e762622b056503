"""The description at /openapi.json: strangers may ask for it as often as they like."""

from __future__ import annotations

import httpx2
import pytest
from starlette.requests import Request
from starlette.routing import Route

from sublet.server.app import _make_described_app

pytestmark = pytest.mark.anyio


async def test_the_description_is_encoded_only_once() -> None:
    [route] = [route for route in _make_described_app().routes if getattr(route, "path", "") == "/openapi.json"]
    assert isinstance(route, Route)
    request = Request({"type": "http", "method": "GET", "path": "/openapi.json", "headers": []})
    first, second = [await route.endpoint(request) for _ in range(2)]
    assert first.body is second.body


async def test_the_description_needs_no_token_and_is_json(ann: httpx2.AsyncClient) -> None:
    answer = await ann.get("/openapi.json", headers={"authorization": ""})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert "/v1/sessions" in answer.json()["paths"]
