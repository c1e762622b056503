"""How fast a scheduler may be called: a few at once, then steadily, so that Slurm's own limiter is never met."""

from __future__ import annotations

import asyncio
import time

AT_ONCE = 20  # calls after a pause; Slurm's limiter, where a site has it on, allows 30
PAUSE = 10  # seconds after which it is full again


class Pace:
    """A bucket of calls that fills up again; who finds it empty waits for their turn."""

    def __init__(self, per_second: float, at_once: int = AT_ONCE) -> None:
        """It is full at first."""
        self._rate, self._most, self._at_once = per_second, at_once, at_once
        self._left, self._seen = float(at_once), time.monotonic()

    def heed(self, per_second: float) -> None:
        """Call no more often than this from now on."""
        self._rate, self._most = per_second, min(self._at_once, max(1, round(per_second * PAUSE)))

    async def take(self, calls: int = 1) -> None:
        """Take so many calls; those that are not there yet are taken in advance and waited for."""
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._seen) * self._rate) - calls
        self._seen = now
        if self._left < 0:
            await asyncio.sleep(-self._left / self._rate)
