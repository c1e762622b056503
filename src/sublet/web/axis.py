"""The ticks of a time axis, at round times of a time zone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

MOST_TICKS = 10  # more would be unreadable
ON_A_PHONE = 4

MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)
DAYS = (1, 2, 7, 14)
MONTHS = (1, 3, 6, 12)


@dataclass(frozen=True, slots=True)
class Tick:
    """A vertical line in the calendar, and its label."""

    time: datetime
    label: str
    day: str  # shown above the label if a new day begins, else empty
    fine: bool  # hidden on narrow screens


def ticks(start: datetime, end: datetime, zone: ZoneInfo) -> list[Tick]:
    """Return round local times from start to end, about ten at most."""
    times, format = _times(start, end, zone)
    stride = max(1, -(-len(times) // ON_A_PHONE))
    midnight = next((i for i, when in enumerate(times) if when.astimezone(zone).hour == 0), 0)  # always shown
    made: list[Tick] = []
    last_day: date | None = None
    for index, when in enumerate(times):
        local = when.astimezone(zone)
        fine = (index - midnight) % stride != 0
        new_day = format == "%H:%M" and local.date() != last_day
        if new_day:
            last_day = local.date()
        made.append(Tick(when, f"{local:{format}}", f"{local:%a} {local.day} {local:%b}" if new_day else "", fine))
    return made


def _times(start: datetime, end: datetime, zone: ZoneInfo) -> tuple[list[datetime], str]:
    length = end - start
    first = start.astimezone(zone).date()
    last = end.astimezone(zone).date()
    for minutes in MINUTES:
        if length / timedelta(minutes=minutes) <= MOST_TICKS:
            return _inside(_by_clock(first, last, minutes, zone), start, end), "%H:%M"
    for days in DAYS:
        if length / timedelta(days=days) <= MOST_TICKS:
            return _inside(_by_day(first, last, days, zone), start, end), "%-d %b"
    for months in MONTHS:
        if length / timedelta(days=30 * months) <= MOST_TICKS:
            return _inside(_by_month(first, last, months, zone), start, end), "%b %Y"
    return _inside(_by_month(first, last, 60, zone), start, end), "%Y"


def _inside(times: Iterator[datetime], start: datetime, end: datetime) -> list[datetime]:
    return [when for when in times if start <= when < end]


def _by_clock(first: date, last: date, minutes: int, zone: ZoneInfo) -> Iterator[datetime]:
    """Yield times that restart at each midnight, so that a change of the clock affects only its own day."""
    day = first
    while day <= last:
        when, stop = _midnight(day, zone), _midnight(day + timedelta(days=1), zone)
        while when < stop:
            yield when
            when += timedelta(minutes=minutes)
        day += timedelta(days=1)


def _by_day(first: date, last: date, days: int, zone: ZoneInfo) -> Iterator[datetime]:
    day = first - timedelta(days=(first.toordinal() - 1) % days)  # weeks begin on Mondays
    while day <= last:
        yield _midnight(day, zone)
        day += timedelta(days=days)


def _by_month(first: date, last: date, months: int, zone: ZoneInfo) -> Iterator[datetime]:
    number = (first.year * 12 + first.month - 1) // months * months
    while (day := date(number // 12, number % 12 + 1, 1)) <= last:
        yield _midnight(day, zone)
        number += months


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)
