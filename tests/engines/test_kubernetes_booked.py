"""A namespace of our own is booked by the calendar here, and a shell in a pod is reached by its owner alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from starlette.routing import Mount, Router

from sublet.app import open_service
from sublet.booking.api.connect import ConnectProxy
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Session
from sublet.kernel.settings import Settings
from sublet.service import Service
from tests.contract.services import ME, ask
from tests.engines.kubernetes_cluster import Namespace

pytestmark = [pytest.mark.anyio, pytest.mark.engines]
SOON = 240.0


@pytest.fixture
async def service(namespace: Namespace, tmp_path: Path) -> AsyncIterator[Service]:
    lab = {"kind": "kubernetes", "terms": "booked", **namespace.settings()}
    async with open_service(Settings.load(tmp_path, platforms={"lab": lab}, poll="PT0.2S")) as opened:
        yield opened


async def wait_for(service: Service, id: str, phase: Phase) -> Session:
    async with asyncio.timeout(SOON):
        while (session := await service.sessions.get(id, ME)).phase is not phase:
            assert session.phase not in (Phase.FAILED, Phase.REJECTED), session
            await service.signals.wait(0.1)
    return session


async def visit(service: Service, session: Session, **headers: str) -> httpx2.Response:
    connect = ConnectProxy(service.connections, service.secrets, service.session_notices)
    transport = httpx2.ASGITransport(app=Router([Mount("/connect", app=connect)]))
    try:
        async with httpx2.AsyncClient(transport=transport, base_url="http://here", timeout=30) as client:
            return await client.get(f"/connect/{session.id}/", headers=headers)
    finally:
        await connect.close()


async def test_the_quota_is_booked_and_never_oversold(service: Service) -> None:
    wanted = {"run": ["sh", "-c", "sleep 2"], "time": "2m", "memory": "256MiB", "cores": 2}
    made = await ask(service, **wanted)
    assert made.result == "YES", made.reasons
    first = made.offers[0]
    assert first.offer.terms.kind == "booked"
    accepted = await service.sessions.accept(first.id, ME)
    assert accepted.until is not None
    other = await ask(service, **wanted)
    assert other.offers[0].offer.start >= accepted.until  # both cores are the first one's until then
    await wait_for(service, accepted.id, Phase.COMPLETED)


async def test_a_shell_in_a_pod_opens_for_who_has_its_secret(service: Service) -> None:
    made = await ask(service, run=None, interactive="shell", time="4m", memory="256MiB")
    assert made.result == "YES", made.reasons
    accepted = await service.sessions.accept(made.offers[0].id, ME)
    session = await wait_for(service, accepted.id, Phase.AVAILABLE)
    allowed = await visit(service, session, Authorization=f"token {service.secrets.of(session.id)}")
    assert (allowed.status_code, "html" in allowed.headers["content-type"]) == (200, True)
    assert (await visit(service, session)).status_code in (401, 403)
    await service.sessions.cancel(session.id, ME)
    async with asyncio.timeout(SOON):
        while (session := await service.sessions.get(session.id, ME)).phase is not Phase.CANCELLED:
            await service.signals.wait(0.1)
