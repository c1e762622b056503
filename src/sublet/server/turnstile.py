"""Middleware that starts a few requests in each turn of the event loop, so that a burst doesn't delay everything."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from sublet.store.writer import MOST, Backlog

A_TURN = 16  # requests started in one turn of the event loop; requests in progress continue beside them
FEW = MOST  # pending writes up to which more requests are started: as many as share a commit
PAUSE = 0.002  # seconds between checks of the number of pending writes
LONGEST = 0.1  # seconds that a turn waits for writes, so that they never lock out requests that only read
STUCK = 0.5  # seconds without a commit after which writes aren't waited for, until there is a commit
AT_ONCE = frozenset({"/health"})  # a monitor must learn that the service is busy, not queue with everyone


class Turnstile:
    """Middleware that starts requests in the order of arrival, a few at a time, and gives writes priority.

    The writer's thread needs Python's lock for each of its statements, and rarely gets it from an event loop that is
    busy with requests. Without this class, accepting an offer takes seconds while reading takes milliseconds.
    """

    def __init__(self, app: ASGIApp, measure_backlog: Callable[[], Backlog] = lambda: Backlog(0, 0)) -> None:
        """Wrap this application; `measure_backlog` returns how much the writer has to do."""
        self.app = app
        self._measure_backlog = measure_backlog
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._begun = 0  # requests started in this turn
        self._since: float | None = None  # since when this turn has waited for writes
        self._progress = (0, 0.0)  # the writer's last turn that was seen, and when

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait for the request's turn, then pass it on."""
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
        """Start the next turn, with the requests that have waited longest."""
        if self._waiting and self._has_to_wait():
            asyncio.get_running_loop().call_later(PAUSE, self._turn)
            return
        self._begun, self._since = 0, None
        while self._waiting and self._begun < A_TURN:
            turn = self._waiting.popleft()
            if not turn.done():  # otherwise its client has gone
                self._begin()
                turn.set_result(None)

    def _has_to_wait(self) -> bool:
        """Whether the writer goes first: only for a short time, and not while it makes no progress."""
        works, turns = self._measure_backlog()
        now = asyncio.get_running_loop().time()
        if works <= FEW:
            return False
        if turns != self._progress[0]:
            self._progress = turns, now
        self._since = self._since or now
        return now - self._since < LONGEST and now - self._progress[1] < STUCK
