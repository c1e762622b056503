"""What could not be done yet: done again, later and later, until its patience is over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

SOONEST, LATEST = 2.0, 60.0  # seconds between two tries: as long as it has waited already, within these


class Retries:
    """Tries, by the names of what is tried."""

    def __init__(self, what: str, patience: float) -> None:
        """`what` waits, {} being the jobs; `patience` is how many seconds after the first failure the last try is."""
        self._what, self._patience, self._why = what, patience, ""
        self._began: dict[str, float] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def words(self) -> str:
        """Of how many jobs it waits, and why; empty: of none."""
        jobs = f"{len(self._began)} job{'s' if len(self._began) > 1 else ''}"
        return f"{self._what.format(jobs)}: {self._why}" if self._began else ""

    def later(self, name: str, why: str, act: Callable[[], None]) -> bool:
        """It failed: do it again later; False if that was the last time."""
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
        """It was done, or nobody wants it any more."""
        self._cancel(name)
        self._began.pop(name, None)

    def stop(self) -> None:
        """Try nothing for now; what has been waited counts."""
        for name in list(self._timers):
            self._cancel(name)

    def _cancel(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer:
            timer.cancel()
