"""How often sessions at another broker are looked at: soon after something has changed, then less and less."""

from __future__ import annotations

import time
from collections.abc import Callable

from sublet.booking.model.job import JobState, State

FIRST, LONGEST, GROWTH = 0.3, 20.0, 1.5  # seconds, and by how much a pause gets longer each time


class WatchPace:
    """When each session is to be looked at next."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is watched yet."""
        self._clock = clock
        self._due: dict[str, tuple[float, float]] = {}  # session → when, and the pause after that
        self._seen: dict[str, tuple[State, str]] = {}

    def watch(self, key: str) -> None:
        """Something has just been done with it."""
        self._due[key] = self._clock() + FIRST, FIRST * GROWTH

    def note(self, key: str, state: JobState) -> None:
        """What was seen of it: if that is new, more may follow soon; what has ended is looked at no more."""
        seen = state.state, state.condition
        if state.state is State.ENDED:
            self.forget(key)
        elif self._seen.get(key) != seen or key not in self._due:
            self._seen[key] = seen
            self.watch(key)

    def list_due(self) -> list[str]:
        """Those whose time has come; each is put off until its next."""
        now = self._clock()
        due = [key for key, (at, _) in self._due.items() if at <= now]
        for key in due:
            pause = self._due[key][1]
            self._due[key] = now + pause, min(LONGEST, pause * GROWTH)
        return due

    def forget(self, key: str) -> None:
        """It need not be looked at any more."""
        self._due.pop(key, None)
        self._seen.pop(key, None)
