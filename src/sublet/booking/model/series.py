"""A recurring booking: one request at recurring times, accepted at once as many sessions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from itertools import islice

from sublet.booking.model.request import Recurring, Window
from sublet.booking.model.windows import expand, parse_start, zone_of
from sublet.kernel.errors import BadRequest

MOST = 200  # sessions of one booking
EXAMPLE = "Write days, hours and a zone, as in 'mon 09:00-12:00 Europe/Berlin' or 'daily 02:00-04:00 UTC'."


class SeatState(StrEnum):
    """What became of one seat of one occurrence."""

    OFFERED = "offered"  # held until the offers expire
    BOOKED = "booked"  # it is a session
    MISSED = "missed"  # there was no room for it
    SKIPPED = "skipped"  # it was left out later
    RELEASED = "released"  # nobody took it, and its organiser released it
    MOVED = "moved"  # to another time, which is an occurrence of its own
    CANCELLED = "cancelled"  # with the whole booking, before its time was over


class SeriesState(StrEnum):
    """The state of a booking."""

    OFFERED = "offered"
    BOOKED = "booked"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class BookedSeat:
    """One session of a booking, at one time; a workshop has several at the same time."""

    number: int  # of its occurrence, from 1 on
    seat: int  # of those at the same time, from 1 on
    start: datetime
    end: datetime
    state: SeatState = SeatState.OFFERED
    offer: str = ""  # the id of the offer, and so of the session
    why: str = ""  # why it was missed
    taker: str = ""  # the person who took it; empty: it is the organiser's


@dataclass(frozen=True, slots=True)
class Series:
    """A recurring booking."""

    id: str
    person: str
    name: str
    every: str  # days, hours and zone
    seats_each: int
    fit: str  # `all`, or `some`: whether to book only the times that fit
    document: str  # the request of each, in the short form
    created: datetime
    expires: datetime  # until when it can be accepted
    state: SeriesState = SeriesState.OFFERED
    seats: tuple[BookedSeat, ...] = ()
    group: str = ""  # whose members may take its seats, one each; empty: nobody's

    def on(self, day: date) -> list[BookedSeat]:
        """Return the organiser's booked seats on a day, by the clock of the booking's zone."""
        zone = zone_of(read_rule(self.every).zone)
        return [seat for seat in self.own if seat.start.astimezone(zone).date() == day]

    @property
    def booked(self) -> list[BookedSeat]:
        """The seats that are sessions."""
        return [seat for seat in self.seats if seat.state is SeatState.BOOKED]

    @property
    def own(self) -> list[BookedSeat]:
        """The booked seats that are still the organiser's, because nobody took them."""
        return [seat for seat in self.booked if not seat.taker]

    def choose_for(self, person: str, now: datetime, day: date | None = None) -> list[BookedSeat]:
        """Choose a free seat at each future time, or on one day, at which the person has none yet."""
        zone = zone_of(read_rule(self.every).zone)
        has = {seat.number for seat in self.booked if seat.taker == person}
        chosen: dict[int, BookedSeat] = {}
        for seat in self.own:
            is_then = day is None or seat.start.astimezone(zone).date() == day
            if seat.start > now and is_then and seat.number not in has:
                chosen.setdefault(seat.number, seat)
        return list(chosen.values())

    def give_to(self, session: str, person: str) -> Series:
        """Return the booking with the seat of this session taken by a person."""
        seats = (replace(seat, taker=person) if seat.offer == session else seat for seat in self.seats)
        return replace(self, seats=tuple(seats))


def read_rule(every: str) -> Recurring:
    """Parse days, hours and zone; raise BadRequest if they don't recur."""
    rule = parse_start(every, datetime(2000, 1, 1, tzinfo=UTC))
    if not isinstance(rule, Recurring):
        raise BadRequest(detail=f"`every`: {every!r} comes only once", hint=EXAMPLE)
    return rule


def plan_occurrences(
    every: str,
    now: datetime,
    horizon: timedelta,
    *,
    count: int | None = None,
    until: datetime | None = None,
    without: Collection[date] = (),
) -> list[Window]:
    """Return the times of a booking by the zone's clock: `count` of them, or until a time, without some days.

    When clocks go forward, a time that doesn't exist is left out, and one that contains the change is shorter.
    """
    if (count is None) == (until is None):
        raise BadRequest(detail="say either how often or until when", hint="Give --count 10, or --until 2027-02-28.")
    rule, last = read_rule(every), now + horizon
    zone = zone_of(rule.zone)
    windows = (
        window
        for window in expand(rule, now, min(until, last) if until else last)
        if window.start > now and window.start.astimezone(zone).date() not in without and _begins_as_asked(window, rule)
    )
    times = list(islice(windows, count if count is not None else MOST + 1))
    if not times:
        raise BadRequest(detail="no time of it is still to come", hint="Give a later --until, or fewer --except.")
    if count is not None and len(times) < count:
        detail = f"only {len(times)} of {count} times are within {horizon.days} days"
        raise BadRequest(detail=detail, hint="Ask for fewer, or for the rest later.")
    return times


def _begins_as_asked(window: Window, rule: Recurring) -> bool:
    """Whether the window begins at the requested time of day, which doesn't exist if clocks skip it."""
    return window.start.astimezone(zone_of(rule.zone)).time() == time.fromisoformat(rule.begins)


def check_size(times: Sequence[Window], seats: int) -> None:
    """Raise BadRequest if a booking has too many sessions, or no seats."""
    if seats < 1 or len(times) * seats > MOST:
        detail = f"{len(times)} times with {seats} seats each are {len(times) * seats} sessions"
        raise BadRequest(detail=detail, hint=f"One booking has from 1 to {MOST} sessions: make several.")
