"""A real service on the memory platform, called through its application without a network."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from itertools import count
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from sublet.app import open_service
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.server.app import make_app
from sublet.service import Service
from tests.smtp import Mailbox, running_smtp

HOST = "http://broker.test"
NUMBERS = count(1)


class Callers:
    """Clients of one application, each with a token of their own."""

    def __init__(self, app: FastAPI, service: Service, stack: AsyncExitStack) -> None:
        self.app, self.service, self.stack = app, service, stack

    async def someone(self, name: str, *, operator: bool = False) -> httpx2.AsyncClient:
        """Someone with a token, whom nobody has seen before: tests share the service, not the people."""
        _, secret = await self.service.people.tokens.make_token(Person(f"{name}-{next(NUMBERS)}", operator))
        return await self.with_headers({"authorization": f"Bearer {secret}"})

    async def with_headers(self, headers: dict[str, str] | None = None) -> httpx2.AsyncClient:
        """Someone who sends these headers."""
        transport = httpx2.ASGITransport(app=self.app)
        client = httpx2.AsyncClient(transport=transport, base_url=HOST, headers=headers, timeout=60)
        return await self.stack.enter_async_context(client)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """The service runs on asyncio alone, one for each file of tests."""
    return "asyncio"


@pytest.fixture(scope="module")
def platforms() -> dict[str, Any]:
    """One, large enough for all tests, whose jobs take a tenth of a second."""
    platform = {"kind": "memory", "nodes": 100, "cores": 16, "memory": "16GiB", "storage": "1PiB", "takes": "0.1s"}
    return {"memory": platform}


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory, platforms: dict[str, Any]) -> AsyncIterator[Service]:
    """A service on these platforms."""
    settings = Settings.load(tmp_path_factory.mktemp("home"), platforms=platforms)
    async with open_service(settings) as opened:
        yield opened


@pytest.fixture(scope="module")
async def callers(service: Service) -> AsyncIterator[Callers]:
    """Whoever calls it."""
    async with AsyncExitStack() as stack:
        yield Callers(make_app(service, "owner"), service, stack)


@pytest.fixture(scope="module")
def mailbox() -> Iterator[Mailbox]:
    """A mail server for a gateway."""
    with running_smtp() as box:
        yield box


@pytest.fixture
async def ann(callers: Callers) -> httpx2.AsyncClient:
    """A person with a token."""
    return await callers.someone("ann")


@pytest.fixture
async def bob(callers: Callers) -> httpx2.AsyncClient:
    """Another person with a token."""
    return await callers.someone("bob")


@pytest.fixture
async def anonymous(callers: Callers) -> httpx2.AsyncClient:
    """Someone without a token."""
    return await callers.with_headers()
