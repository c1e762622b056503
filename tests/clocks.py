"""A service's time, as tests want it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta


@dataclass
class StillClock:
    """A time that stands still until it is moved on."""

    time: datetime = datetime(2026, 11, 16, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        """That time."""
        return self.time


@dataclass
class LateClock:
    """The time, and what was added to it."""

    later: timedelta = timedelta()

    def __call__(self) -> datetime:
        """That time."""
        return datetime.now(UTC) + self.later
