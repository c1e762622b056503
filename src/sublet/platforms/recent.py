"""Keys that are remembered for a while, so that a service that runs for months doesn't collect them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from time import monotonic


class RecentKeys:
    """The keys that were noted in the last so many seconds."""

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        """Start empty; a key is forgotten after `seconds`."""
        self._seconds, self._clock = seconds, clock
        self._noted: dict[str, float] = {}  # key → when, the oldest first

    def note(self, key: str) -> None:
        """Remember a key from now on, and forget the keys whose time is over."""
        now = self._clock()
        for old in list(takewhile(lambda old: now - self._noted[old] >= self._seconds, self._noted)):
            del self._noted[old]
        self._noted.pop(key, None)
        self._noted[key] = now

    def __contains__(self, key: str) -> bool:
        """Whether the key was noted recently."""
        return key in self._noted and self._clock() - self._noted[key] < self._seconds

    def __len__(self) -> int:
        """Return how many keys are kept."""
        return len(self._noted)
