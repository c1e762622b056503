"""A service's time, as tests want it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sublet.kernel.clock import utc_now
from sublet.service import Service


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


@dataclass
class SettableClock:
    """The machine's time, until a test says what it is to be."""

    read: Callable[[], datetime] = utc_now

    def __call__(self) -> datetime:
        """That time."""
        return self.read()


def set_clock(service: Service, read: Callable[[], datetime]) -> None:
    """Let a service that was opened with a SettableClock have this time."""
    assert isinstance(service.now, SettableClock)
    service.now.read = read
