"""How long to wait before something is tried again: longer each time, up to a limit."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta


@dataclass
class Backoff:
    """The tries that have failed, of each one that tries; a success forgets them."""

    first: timedelta = timedelta(seconds=1)
    longest: timedelta = timedelta(minutes=1)
    _waits: dict[str, timedelta] = field(default_factory=dict)

    def lengthen(self, who: str) -> timedelta:
        """A try has failed: how long to wait until the next one."""
        wait = self._waits.get(who, self.first)
        self._waits[who] = min(self.longest, 2 * wait)
        return wait

    def forget(self, who: str) -> None:
        """It succeeded, or is given up."""
        self._waits.pop(who, None)
