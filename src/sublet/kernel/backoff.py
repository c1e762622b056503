"""Exponential backoff: how long to wait before a retry, up to a limit."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta


@dataclass
class Backoff:
    """The current backoff of each caller that had failures; a success resets it."""

    first: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(minutes=1)
    _waits: dict[str, timedelta] = field(default_factory=dict)

    def lengthen(self, who: str) -> timedelta:
        """Record a failure and return how long to wait before the next try."""
        wait = self._waits.get(who, self.first)
        self._waits[who] = min(self.longest, 2 * wait)
        return wait

    def forget(self, who: str) -> None:
        """Reset the backoff, after a success or when the caller gives up."""
        self._waits.pop(who, None)
