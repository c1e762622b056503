"""Requests that come at once begin a few at a time, in their order; a monitor's at once."""

from __future__ import annotations

import asyncio

import pytest
from starlette.types import Receive, Scope, Send

from sublet.server.turnstile import A_TURN, FEW, Turnstile
from sublet.store.writer import Backlog

pytestmark = pytest.mark.anyio


class Begun:
    """An application that notes who begins, in which order."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.paths.append(scope["path"])


async def receive() -> dict[str, str]:
    return {}


async def send(_: object) -> None:
    pass


async def test_hundreds_begin_in_their_order_and_a_monitor_before_those_who_wait() -> None:
    app = Begun()
    turnstile = Turnstile(app)

    def come(path: str) -> asyncio.Task[None]:
        return asyncio.create_task(turnstile({"type": "http", "path": path}, receive, send))

    many = [come(f"/{number}") for number in range(10 * A_TURN)]
    await asyncio.sleep(0)  # one turn of the event loop
    assert app.paths == [f"/{number}" for number in range(A_TURN)]
    health = come("/health")
    await health
    begun = len(app.paths)
    assert begun < 5 * A_TURN
    await asyncio.gather(*many)
    assert [path for path in app.paths if path != "/health"] == [f"/{number}" for number in range(10 * A_TURN)]


async def test_one_who_goes_away_while_waiting_holds_nobody_up() -> None:
    app = Begun()
    turnstile = Turnstile(app)
    tasks = [asyncio.create_task(turnstile({"type": "http", "path": f"/{n}"}, receive, send)) for n in range(40)]
    await asyncio.sleep(0)
    for task in tasks[A_TURN:30]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert app.paths == [f"/{number}" for number in (*range(A_TURN), *range(30, 40))]


async def test_what_is_no_request_passes() -> None:
    app = Begun()
    turnstile = Turnstile(app)
    scopes: list[Scope] = [{"type": "websocket", "path": f"/{number}"} for number in range(3 * A_TURN)]
    for scope in scopes:
        await turnstile(scope, receive, send)
    assert len(app.paths) == 3 * A_TURN


async def test_writes_go_before_requests_that_have_not_begun() -> None:
    app = Begun()
    backlog = Backlog(FEW + 1, 1)
    turnstile = Turnstile(app, lambda: backlog)
    tasks = [
        asyncio.create_task(turnstile({"type": "http", "path": f"/{n}"}, receive, send)) for n in range(3 * A_TURN)
    ]
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(app.paths) == A_TURN
    monitor = asyncio.create_task(turnstile({"type": "http", "path": "/health"}, receive, send))
    await monitor
    backlog = Backlog(FEW, 2)
    await asyncio.gather(*tasks)
    assert [path for path in app.paths if path != "/health"] == [f"/{number}" for number in range(3 * A_TURN)]


@pytest.mark.parametrize("progresses", [True, False])
async def test_a_writer_that_never_catches_up_keeps_nobody_out(progresses: bool) -> None:
    app = Begun()
    turns = 0

    def measure() -> Backlog:
        nonlocal turns
        turns += progresses
        return Backlog(FEW + 1, turns)

    turnstile = Turnstile(app, measure)
    requests = (turnstile({"type": "http", "path": f"/{n}"}, receive, send) for n in range(4 * A_TURN))
    await asyncio.gather(*requests)
    assert app.paths == [f"/{number}" for number in range(4 * A_TURN)]
