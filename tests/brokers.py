"""Several services in this process, each on a port of its own: brokers, and aggregators above them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from starlette.types import ASGIApp

from sublet.booking.model.session import OfferSet
from sublet.people.model.person import Person
from sublet.server.app import make_app
from sublet.service import Service
from tests.contract.services import ME, serving

PATIENCE = 20.0


@dataclass
class RunningBroker:
    """A service that others reach."""

    service: Service
    url: str
    token: str
    app: ASGIApp

    def settings(self, **more: Any) -> dict[str, Any]:
        """How another service names it as a platform; its token is added by `introduce`."""
        return {"kind": "broker", "url": self.url, **more}

    def client(self) -> httpx2.AsyncClient:
        """Someone who calls it over HTTP."""
        headers = {"authorization": f"Bearer {self.token}"}
        return httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=60)

    async def open_offers(self) -> int:
        """How many offers can still be accepted here."""
        return sum(len(each.offers) for each in await self.service.offers.open_offers(ME))

    async def nothing_is_held(self) -> None:
        """Wait until no offer is open here; AssertionError if that doesn't come."""
        async with asyncio.timeout(PATIENCE):
            while await self.open_offers():  # noqa: ASYNC110 - it is asked, and does not tell
                await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def listening(app: ASGIApp) -> AsyncIterator[str]:
    """The application on a port of its own, while this lasts."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        config = uvicorn.Config(app, lifespan="off", log_config=None, timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        server.capture_signals = contextlib.nullcontext  # type: ignore[assignment, method-assign]
        task = asyncio.create_task(server.serve([listener]))
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


@contextlib.asynccontextmanager
async def running_broker(
    home: Path, brokers: Mapping[str, RunningBroker] | None = None, **settings: Any
) -> AsyncIterator[RunningBroker]:
    """A service with these brokers below it, and on platforms that play, unless the settings say otherwise."""
    home.mkdir(parents=True, exist_ok=True)  # noqa: ASYNC240 - a moment
    settings.setdefault("platforms", {} if brokers else {"trial": {"kind": "memory"}})
    async with serving(home, **settings) as service:
        app = make_app(service, ME.name)
        async with listening(app) as url:
            _, token = await service.people.tokens.make_token(ME)
            for name, broker in (brokers or {}).items():
                await service.brokers.add(Person(ME.name, operator=True), name, broker.url, broker.token)
            yield RunningBroker(service, url, token, app)


def platforms_of(answer: OfferSet) -> list[str]:
    """Where each offer would run, by its whole route."""
    from sublet.booking.model.offer import list_route

    return ["/".join(list_route(offer.offer.platform, offer.offer.terms)) for offer in answer.offers]
