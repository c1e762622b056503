"""Answers that go on end when their reader's token counts no more; many tokens are looked up together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fastapi import FastAPI, Request

from sublet.api.people import person_of
from sublet.api.streams import Doorkeeper, Reader
from sublet.people.model.person import Person
from sublet.server.app import make_app
from sublet.service import Service

pytestmark = pytest.mark.anyio
MANY = 40


async def make_reader(app: FastAPI, service: Service, number: int) -> tuple[str, Reader]:
    """Someone with a token of their own who reads, and the id of the token."""
    token, secret = await service.people.tokens.make_token(Person(f"reader-{number}"))
    headers = [(b"authorization", f"Bearer {secret}".encode())]
    scope = {"type": "http", "method": "GET", "path": "/v1/events", "query_string": b"", "headers": headers, "app": app}
    request = Request(scope)
    return token.id, Reader(request, await person_of(request))


async def test_the_tokens_of_many_readers_are_looked_up_together_and_one_that_is_revoked_ends_its_answer(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, keeper = make_app(service, "owner"), Doorkeeper()
    readers = [await make_reader(app, service, number) for number in range(MANY)]
    begin, views = service.store._database.begin_reading, [0]

    def counted(connection: Any) -> None:
        views[0] += 1
        begin(connection)

    monkeypatch.setattr(service.store._database, "begin_reading", counted)
    monkeypatch.setattr("sublet.api.streams.MOMENT", 0.05)
    revoked, reader = readers[-1]  # looked at last, after all others
    await service.people.tokens.revoke_token(Person("owner", operator=True), revoked)
    app.state.remembered.clear()
    views[0] = 0
    for _, one in readers:
        keeper.watch(one)
    async with asyncio.timeout(30):
        await reader.refused.wait()
    assert views[0] < MANY / 2, "each token had a look of its own"
    assert [number for number, (_, one) in enumerate(readers) if one.refused.is_set()] == [MANY - 1]
    for _, one in readers:
        keeper.leave(one)
