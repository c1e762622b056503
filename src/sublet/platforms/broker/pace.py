"""How often sessions at another broker are polled: soon after a change, then with growing pauses."""

from __future__ import annotations

import time
from collections.abc import Callable

from sublet.booking.model.job import JobState, State

FIRST, LONGEST, GROWTH = 0.3, 20.0, 1.5  # seconds, and the factor by which a pause grows each time


class WatchPace:
    """When each session is to be polled next."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Set up without watching anything."""
        self._clock = clock
        self._due: dict[str, tuple[float, float]] = {}  # session → when, and the pause after that
        self._seen: dict[str, tuple[State, str]] = {}

    def watch(self, key: str) -> None:
        """Poll a session soon, because something was just done with it."""
        self._due[key] = self._clock() + FIRST, FIRST * GROWTH

    def note(self, key: str, state: JobState) -> None:
        """Record a session's state: poll soon if it is new, and no more if the session has ended."""
        seen = state.state, state.condition
        if state.state is State.ENDED:
            self.forget(key)
        elif self._seen.get(key) != seen or key not in self._due:
            self._seen[key] = seen
            self.watch(key)

    def list_due(self) -> list[str]:
        """Return the sessions that are due, and schedule their next poll."""
        now = self._clock()
        due = [key for key, (at, _) in self._due.items() if at <= now]
        for key in due:
            pause = self._due[key][1]
            self._due[key] = now + pause, min(LONGEST, pause * GROWTH)
        return due

    def forget(self, key: str) -> None:
        """Stop polling a session."""
        self._due.pop(key, None)
        self._seen.pop(key, None)
