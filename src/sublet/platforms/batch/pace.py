"""Rate limiting of calls to a scheduler: a burst, then a steady rate, to stay below the scheduler's own limit."""

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

AT_ONCE = 20  # calls in a burst; Slurm's limiter, where a site enables it, allows 30
PAUSE = 10  # seconds until the bucket is full again
SHARE = 2 / 3  # of what a limiter allows: the rest is for the person's own commands


@dataclass(frozen=True, slots=True)
class Limiter:
    """A scheduler's own limit on one user's calls: a burst, then a rate per second."""

    at_once: int
    per_second: float


class Pace:
    """A token bucket of calls; callers wait while it is empty.

    Where the scheduler has a limiter, only one exec calls it at a time, and the bucket doesn't fill meanwhile, so that
    delayed calls don't arrive in a crowd.
    """

    def __init__(self, per_second: float, at_once: int = AT_ONCE) -> None:
        """Start with a full bucket."""
        self._rate, self._most, self._at_once = per_second, at_once, at_once
        self._left, self._seen = float(at_once), time.monotonic()
        self._made, self._limited, self._turn = 0, False, asyncio.Lock()

    def heed(self, per_second: float, limiter: Limiter | None = None) -> None:
        """Set the rate from now on, and stay well within a limiter."""
        most = min(self._at_once, max(1, round(per_second * PAUSE)))
        if limiter:
            per_second = min(per_second, limiter.per_second * SHARE)
            most = min(most, max(1, int(limiter.at_once * SHARE)))
        self._fill()
        if limiter and not self._limited:  # calls made before the limiter was known count against its bucket too
            self._left = max(0, most - self._made)
        self._rate, self._most, self._limited = per_second, most, limiter is not None
        self._left = min(self._left, most)

    @contextlib.asynccontextmanager
    async def turn(self, calls: int) -> AsyncIterator[None]:
        """Take this many calls from the bucket, and make them in this block."""
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
        """Take this many calls; if the bucket has fewer, wait until it would have filled."""
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
    """Return the pace shared by all platforms in this process that use an account, as its calls count together."""
    pace = _KEPT.get(account)
    if pace is None:
        pace = _KEPT[account] = Pace(per_second)
    return pace


class PacedReach:
    """A reach that calls the scheduler at a limited rate; everything else runs at once."""

    def __init__(self, reach: Reach, pace: Pace) -> None:
        """Limit the calls through this reach to this pace."""
        self.name, self.inner, self._pace = reach.name, reach, pace

    async def run(self, command: Command[T]) -> T:
        """Run one command."""
        async with self._pace.turn(command.calls):
            return await self.inner.run(command)

    async def run_all(self, commands: Sequence[Command[Any]]) -> list[Any]:
        """Run commands one after another in one exec."""
        async with self._pace.turn(sum(command.calls for command in commands)):
            return await self.inner.run_all(commands)

    async def pour(self, argv: tuple[str, ...], pieces: AsyncIterator[bytes]) -> Outcome | None:
        """Run a program that reads a stream; None if the reach has no channel for it."""
        return await self.inner.pour(argv, pieces) if isinstance(self.inner, Pours) else None

    async def send(self, source: Path, target: str, progress: Progress) -> None:
        """Copy a file or a directory to the system."""
        await self.inner.send(source, target, progress)

    async def fetch(self, source: str, target: Path, progress: Progress) -> None:
        """Copy a file or a directory from the system."""
        await self.inner.fetch(source, target, progress)

    async def tunnel(self, name: str, host: str, port: int) -> str:
        """Open a tunnel to a port of a machine there, and return its local address."""
        return await self.inner.tunnel(name, host, port)

    async def untunnel(self, name: str) -> None:
        """Close a tunnel."""
        await self.inner.untunnel(name)

    async def read(self, path: str, offset: int, limit: int) -> bytes:
        """Read part of a file there."""
        return await self.inner.read(path, offset, limit)

    async def close(self) -> None:
        """Close the connection."""
        await self.inner.close()
