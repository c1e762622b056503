"""Retries with increasing delays, until a time limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

SOONEST, LATEST = 2.0, 60.0  # seconds between attempts: as long as it has already waited, within these limits


class Retries:
    """Retries, by name."""

    def __init__(self, what: str, patience: float) -> None:
        """`what` describes what waits, with {} for the jobs; `patience` is the time limit in seconds."""
        self._what, self._patience, self._why = what, patience, ""
        self._began: dict[str, float] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def words(self) -> str:
        """Describe how many jobs wait and why; empty if none do."""
        jobs = f"{len(self._began)} job{'s' if len(self._began) > 1 else ''}"
        return f"{self._what.format(jobs)}: {self._why}" if self._began else ""

    def later(self, name: str, why: str, act: Callable[[], None]) -> bool:
        """Schedule a retry after a failure; return False if the time limit is over."""
        self._cancel(name)
        self._why = why
        now = time.monotonic()
        waited = now - self._began.setdefault(name, now)
        if waited >= self._patience:
            self.forget(name)
            return False
        seconds = min(max(SOONEST, waited), LATEST, self._patience - waited)
        self._timers[name] = asyncio.get_running_loop().call_later(seconds, act)
        return True

    def forget(self, name: str) -> None:
        """Stop retrying, since it was done or is no longer wanted."""
        self._cancel(name)
        self._began.pop(name, None)

    def stop(self) -> None:
        """Pause all retries; the time they have waited still counts."""
        for name in list(self._timers):
            self._cancel(name)

    def _cancel(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer:
            timer.cancel()
