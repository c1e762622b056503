"""How fast a scheduler may be called: a few at once, then steadily, so that its own limiter is never met."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from sublet.reach.port import Command, Outcome, Progress, Reach, T
from sublet.reach.pouring import Pours

AT_ONCE = 20  # calls after a pause; Slurm's limiter, where a site has it on, allows 30
PAUSE = 10  # seconds after which it is full again
SHARE = 2 / 3  # of what a limiter allows: the rest is for the person's own commands


@dataclass(frozen=True, slots=True)
class Limiter:
    """A scheduler's own limit on the calls of one user: so many at once, then so many a second."""

    at_once: int
    per_second: float


class Pace:
    """A bucket of calls that fills up again; who finds it empty waits for their turn.

    Where there is a limiter, one exec calls it at a time, and the bucket fills only while none does: so calls that
    were held up on their way don't arrive in a crowd.
    """

    def __init__(self, per_second: float, at_once: int = AT_ONCE) -> None:
        """It is full at first."""
        self._rate, self._most, self._at_once = per_second, at_once, at_once
        self._left, self._seen = float(at_once), time.monotonic()
        self._made, self._limited, self._turn = 0, False, asyncio.Lock()

    def heed(self, per_second: float, limiter: Limiter | None = None) -> None:
        """Call no more often than this from now on, and stay well within a limiter."""
        most = min(self._at_once, max(1, round(per_second * PAUSE)))
        if limiter:
            per_second = min(per_second, limiter.per_second * SHARE)
            most = min(most, max(1, int(limiter.at_once * SHARE)))
        self._fill()
        if limiter and not self._limited:  # what was taken before it was known of was taken from its bucket
            self._left = max(0, most - self._made)
        self._rate, self._most, self._limited = per_second, most, limiter is not None
        self._left = min(self._left, most)

    @contextlib.asynccontextmanager
    async def turn(self, calls: int) -> AsyncIterator[None]:
        """Take so many calls, and make them in this block."""
        if not (calls and self._limited):
            await self.take(calls)
            yield
            return
        async with self._turn:
            await self.take(calls)
            self._fill()
            try:
                yield
            finally:
                self._seen = time.monotonic()

    async def take(self, calls: int = 1) -> None:
        """Take so many calls; those that are not there yet are taken in advance and waited for."""
        if not calls:
            return
        self._fill()
        self._made += calls
        self._left -= calls
        if self._left < 0:
            await asyncio.sleep(-self._left / self._rate)

    def _fill(self) -> None:
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._seen) * self._rate)
        self._seen = now


_KEPT: WeakValueDictionary[tuple[object, ...], Pace] = WeakValueDictionary()


def pace_of(account: tuple[object, ...], per_second: float) -> Pace:
    """The one pace of all platforms in this process that use an account: the scheduler counts them as one, too."""
    pace = _KEPT.get(account)
    if pace is None:
        pace = _KEPT[account] = Pace(per_second)
    return pace


class PacedReach:
    """A way to a system on which the scheduler is called at a pace; all else goes at once."""

    def __init__(self, reach: Reach, pace: Pace) -> None:
        """Keep this pace on this way."""
        self.name, self.inner, self._pace = reach.name, reach, pace

    async def run(self, command: Command[T]) -> T:
        """Run one command."""
        async with self._pace.turn(command.calls):
            return await self.inner.run(command)

    async def run_all(self, commands: Sequence[Command[Any]]) -> list[Any]:
        """Run them one after another in one exec."""
        async with self._pace.turn(sum(command.calls for command in commands)):
            return await self.inner.run_all(commands)

    async def pour(self, argv: tuple[str, ...], pieces: AsyncIterator[bytes]) -> Outcome | None:
        """Run a program that reads a stream, where there is a channel for it."""
        return await self.inner.pour(argv, pieces) if isinstance(self.inner, Pours) else None

    async def send(self, source: Path, target: str, progress: Progress) -> None:
        """Bring a file or a directory there."""
        await self.inner.send(source, target, progress)

    async def fetch(self, source: str, target: Path, progress: Progress) -> None:
        """Bring a file or a directory from there."""
        await self.inner.fetch(source, target, progress)

    async def tunnel(self, name: str, host: str, port: int) -> str:
        """A way to a port of a machine there."""
        return await self.inner.tunnel(name, host, port)

    async def untunnel(self, name: str) -> None:
        """Take it away."""
        await self.inner.untunnel(name)

    async def read(self, path: str, offset: int, limit: int) -> bytes:
        """Part of a file there."""
        return await self.inner.read(path, offset, limit)

    async def close(self) -> None:
        """Let go."""
        await self.inner.close()
