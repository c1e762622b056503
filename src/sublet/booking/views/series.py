"""Views of recurring bookings."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, kw_only=True)
class BookingAsk:
    """A request to run at recurring times."""

    every: str  # days, hours and zone: `mon 09:00-12:00 Europe/Berlin`
    request: dict[str, Any] = field(default_factory=dict)  # in the short form, without `start` and `time`
    name: str = ""
    count: int | None = None  # how many times
    until: str = ""  # no time starts at or after this instant
    without: tuple[str, ...] = ()  # days to leave out, as 2026-12-24
    seats: int = 1  # sessions at each time
    fit: str = "all"  # all, or some: take the times that fit
    group: str = ""  # the group whose members may take its seats, one each


@dataclass(frozen=True, kw_only=True)
class BookingMove:
    """The day of a booking to change, and for a move the new time."""

    day: str  # as 2026-12-24, by the clock of the booking's zone
    to: str = ""  # a time to start, as `2026-12-23 09:00`


@dataclass(frozen=True, kw_only=True)
class SeatView:
    """One session of a booking."""

    number: int
    seat: int
    start: datetime
    end: datetime
    state: str  # offered, booked, missed, skipped, released, moved or cancelled
    session: str = ""
    why: str = ""  # why it was missed
    taker: str = ""  # who took it; empty: nobody


@dataclass(frozen=True, kw_only=True)
class BookingView:
    """A recurring booking."""

    id: str
    short: str
    name: str
    every: str
    state: str  # offered, booked or cancelled
    fit: str
    seats_each: int
    created: datetime
    expires: datetime
    seats: tuple[SeatView, ...] = ()
    organiser: str = ""
    group: str = ""  # the group whose members may take its seats


@dataclass(frozen=True, kw_only=True)
class BookingList:
    """A person's bookings, newest first."""

    items: tuple[BookingView, ...]
    open: tuple[BookingView, ...] = ()  # other people's, in which they can take a seat or have one


@dataclass(frozen=True, kw_only=True)
class SeatAsk:
    """Which seats of a booking are meant: those of one day, or of all future times."""

    day: str = ""  # as 2026-12-24, by the clock of the booking's zone
