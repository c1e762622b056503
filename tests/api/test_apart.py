"""Sessions under names of their own: what runs in one is of another site than the pages, and than other sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from sublet.app import open_service
from sublet.booking.model.session import Connector
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.server.app import make_app
from sublet.service import Service
from tests.contract.services import ask

pytestmark = pytest.mark.anyio
ID = "7c1f6b1e-8d43-4b0a-9e55-6a3f0a1d2b3c"
OTHER = "0f3b2c59-77aa-4a37-8f6f-1f64f9d7a111"
NAMES = {
    "https://{session}.sessions.example.org": f"{ID}.sessions.example.org",
    "https://sessions.example.org": "sessions.example.org",
}


@pytest.fixture(params=list(NAMES))
async def service(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Service]:
    platforms = {"trial": {"kind": "memory"}}
    settings = Settings.load(tmp_path / "home", platforms=platforms, sessions_url=request.param)
    async with open_service(settings, loop=False) as opened:
        yield opened


async def status(service: Service, host: str, path: str) -> str:
    """What is answered there: the code of the problem."""
    transport = httpx2.ASGITransport(app=make_app(service, "owner"))
    async with httpx2.AsyncClient(transport=transport, base_url=f"https://{host}") as client:
        answer = await client.get(path)
        return str(answer.json()["code"]) if "problem" in answer.headers["content-type"] else str(answer.status_code)


async def test_each_name_leads_to_its_own_and_nowhere_else(service: Service) -> None:
    own = NAMES[service.settings.sessions_url]
    assert await status(service, own, f"/connect/{ID}/lab") == "not-signed-in"  # so far it came
    assert await status(service, own.upper(), f"/connect/{ID}/") == "not-signed-in"
    nowhere = "not-signed-in" if "{session}" in service.settings.sessions_url else "not-found"
    for path in ("/web/", "/web/login", "/v1/whoami", "/health", "/openapi.json", "/connectx"):
        assert await status(service, own, path) == nowhere, path  # all paths of a session's host are the session's
    for host in ("gateway.example.org", "evil.example", f"{OTHER}.sessions.example.org"):
        assert await status(service, host, f"/connect/{ID}/lab") == "not-found", host
    assert await status(service, "gateway.example.org", "/web/login") == "200"
    assert await status(service, "gateway.example.org", "/v1/whoami") == "not-signed-in"


async def test_a_session_is_shown_with_its_own_address(service: Service) -> None:
    (offer, *_) = (await ask(service, Person("me"))).offers
    session = replace(offer, connectors=(Connector("jupyter", "AVAILABLE", "HTTP", f"/connect/{offer.id}/"),))
    (way,) = service.presenter.with_connectors(session).connectors
    host = service.settings.sessions_url.replace("{session}", offer.id)
    assert way.location.startswith(f"{host}/connect/{offer.id}/?token=")
    assert way.protocol == "HTTPS"
