"""Lets a few requests begin in each turn of the event loop, so that none waits for hundreds that came at once."""

from __future__ import annotations

import asyncio
from collections import deque

from starlette.types import ASGIApp, Receive, Scope, Send

A_TURN = 8  # requests that begin in one turn of the event loop; whatever has begun goes on beside them
AT_ONCE = frozenset({"/health"})  # a monitor has to hear that the service is busy, not wait with everyone


class Turnstile:
    """An application whose requests begin in the order in which they came, a few at a time."""

    def __init__(self, app: ASGIApp) -> None:
        """Let requests in to this one."""
        self.app = app
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._begun = 0  # in this turn

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for its turn, and pass it on."""
        if scope["type"] == "http" and scope["path"] not in AT_ONCE:
            if self._begun >= A_TURN:
                await self._wait()
            else:
                self._begin()
        await self.app(scope, receive, send)

    async def _wait(self) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _begin(self) -> None:
        if not self._begun:
            asyncio.get_running_loop().call_soon(self._turn)
        self._begun += 1

    def _turn(self) -> None:
        """The next turn: those who have waited longest are first."""
        self._begun = 0
        while self._waiting and self._begun < A_TURN:
            turn = self._waiting.popleft()
            if not turn.done():  # else its client has gone
                self._begin()
                turn.set_result(None)
