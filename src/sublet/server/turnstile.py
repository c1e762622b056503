"""Lets a few requests begin in each turn of the event loop, so that none waits for hundreds that came at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from starlette.types import ASGIApp, Receive, Scope, Send

from sublet.store.writer import Backlog

A_TURN = 8  # requests that begin in one turn of the event loop; whatever has begun goes on beside them
FEW = 16  # writes under way beside which more requests begin
PAUSE = 0.002  # seconds until it is looked again whether there are more
LONGEST = 0.1  # seconds that a turn waits for writes: those who only read are never kept out by them
STUCK = 0.5  # seconds without a commit after which writes are not waited for, until there is one
AT_ONCE = frozenset({"/health"})  # a monitor has to hear that the service is busy, not wait with everyone


class Turnstile:
    """An application whose requests begin in the order in which they came, a few at a time, and writes go before them.

    The writer's thread needs Python's lock for each of its statements, and hardly gets it from an event loop that is
    busy with requests: without this, accepting takes seconds while looking takes moments.
    """

    def __init__(self, app: ASGIApp, measure_backlog: Callable[[], Backlog] = lambda: Backlog(0, 0)) -> None:
        """Let requests in to this one, while the writer has little to do."""
        self.app = app
        self._measure_backlog = measure_backlog
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._begun = 0  # in this turn
        self._since: float | None = None  # when this turn began to wait for writes
        self._progress = (0, 0.0)  # the writer's last turn that was seen, and when

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
        if self._waiting and self._has_to_wait():
            asyncio.get_running_loop().call_later(PAUSE, self._turn)
            return
        self._begun, self._since = 0, None
        while self._waiting and self._begun < A_TURN:
            turn = self._waiting.popleft()
            if not turn.done():  # else its client has gone
                self._begin()
                turn.set_result(None)

    def _has_to_wait(self) -> bool:
        """Whether the writer is to go first: not for long, and not again until it has made progress."""
        works, turns = self._measure_backlog()
        now = asyncio.get_running_loop().time()
        if works <= FEW:
            return False
        if turns != self._progress[0]:
            self._progress = turns, now
        self._since = self._since or now
        return now - self._since < LONGEST and now - self._progress[1] < STUCK
