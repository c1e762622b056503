"""When a session may begin: ISO 8601 intervals, words, and windows that come again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from sublet.core.amounts import parse_duration, shown
from sublet.core.request import Recurring, Request, Window
from sublet.errors import BadAmount

NOW = timedelta(minutes=5)  # how soon "now" is: shorter than this nobody can read an offer and take it
LONGEST_WINDOW = timedelta(days=36_525)
SECOND = timedelta(seconds=1)
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SETS = {"daily": range(7), "weekdays": range(5), "weekend": range(5, 7), "weekends": range(5, 7)}
_HOURS = re.compile(r"([0-9]{1,2})(?::([0-9]{2}))?-([0-9]{1,2})(?::([0-9]{2}))?")
_INSTANT = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}([T ].*)?")
_EXAMPLE = "2026-12-01T09:00:00Z/PT3H, within 2h, or mon-wed 09:00-12:00 Europe/London"


def parse_instant(text: str) -> datetime:
    """A point in time in UTC; without an offset it is taken to be UTC, and a date is its midnight."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadAmount(text=shown(text), what="a point in time", example="2026-12-01T09:00:00Z") from None


def parse_interval(text: str) -> Window:
    """The window in `start/end`, `start/duration` or `duration/end`."""
    first, slash, second = text.strip().partition("/")
    if not slash:
        bare = _INSTANT.fullmatch(first) is not None
        what = "an interval but a single instant" if bare else "an interval"
        raise BadAmount(text=shown(text), what=what, example=f"{first}/PT0S" if bare else _EXAMPLE)
    try:
        if second[:1] in ("P", "p"):
            start = parse_instant(first)
            return Window(start, start + parse_duration(second, LONGEST_WINDOW))
        end = parse_instant(second)
        if first[:1] in ("P", "p"):
            return Window(end - parse_duration(first, LONGEST_WINDOW), end)
        start = parse_instant(first)
    except OverflowError:
        raise BadAmount(text=shown(text), what="an interval within this calendar", example=_EXAMPLE) from None
    if end < start:
        raise BadAmount(text=shown(text), what="an interval: it ends before it starts", example="the earlier first")
    return Window(start, end)


def parse_start(text: str, now: datetime) -> Window | Recurring:
    """The window, or the windows that come again, in an interval or in words."""
    words = text.split()
    if len(words) == 1 and ("/" in text or _INSTANT.fullmatch(text.strip())):
        return parse_interval(text)
    match [word.lower() for word in words]:
        case ["now"]:
            return Window(now, now + NOW)
        case ["within", *length] if length:
            return Window(now, now + parse_duration("".join(length)))
        case [day, hours, *_] if _HOURS.fullmatch(hours):
            return _days_and_hours(day, hours, words[2:], text, now)
    raise BadAmount(text=shown(text), what="a time to start", example=_EXAMPLE)


def _days_and_hours(day: str, hours: str, rest: list[str], text: str, now: datetime) -> Window | Recurring:
    begins, ends = _clock(hours, text)
    until = None
    if len(rest) >= 2 and rest[-2].lower() == "until":
        until = parse_instant(rest[-1])
        rest = rest[:-2]
    if len(rest) > 1:
        raise BadAmount(text=shown(text), what="a time to start", example=_EXAMPLE)
    zone = rest[0] if rest else "UTC"
    tz = zone_of(zone)
    on = _one_day(day, now.astimezone(tz).date())
    if on is None:
        return Recurring(_weekdays(day, text), begins, ends, zone, until)
    if until is not None:
        raise BadAmount(text=shown(text), what="a time that comes again", example="weekdays instead of a date")
    window = _on(on, time.fromisoformat(begins), time.fromisoformat(ends), tz)
    if window is None:
        raise BadAmount(text=shown(text), what="a time that exists on that day", example=_EXAMPLE)
    return window


def _clock(hours: str, text: str) -> tuple[str, str]:
    found = _HOURS.fullmatch(hours)
    numbers = [int(part or 0) for part in found.groups()] if found else [99]
    if numbers[2:] == [24, 0]:
        numbers[2] = 0
    if any(n > 23 for n in numbers[::2]) or any(n > 59 for n in numbers[1::2]):
        raise BadAmount(text=shown(text), what="a time of day", example="09:00-12:00")
    return f"{numbers[0]:02}:{numbers[1]:02}", f"{numbers[2]:02}:{numbers[3]:02}"


def _one_day(day: str, today: date) -> date | None:
    if day in ("today", "tomorrow"):
        return today + timedelta(days=day == "tomorrow")
    return parse_instant(day).date() if _INSTANT.fullmatch(day) else None


def _weekdays(text: str, whole: str) -> tuple[int, ...]:
    if text in _SETS:
        return tuple(_SETS[text])
    days: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if first[:3] not in DAYS or (dash and last[:3] not in DAYS):
            raise BadAmount(text=shown(whole), what="a time to start", example=_EXAMPLE)
        start = DAYS.index(first[:3])
        length = (DAYS.index(last[:3]) - start) % 7 if dash else 0
        days.update((start + n) % 7 for n in range(length + 1))
    return tuple(sorted(days))


def zone_of(name: str) -> ZoneInfo:
    """The time zone of that IANA name."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise BadAmount(text=shown(name), what="a time zone", example="one like Europe/London, or UTC") from None


def windows_of(request: Request, now: datetime, horizon: timedelta) -> tuple[Window, ...]:
    """Every window of a request that isn't over, from `now` to the horizon, the earliest first."""
    until = now + horizon
    found = [window for window in request.windows if last_start(window) >= now and window.start < until]
    for recurring in request.recurring:
        found.extend(window for window in expand(recurring, now, until) if last_start(window) >= now)
    return tuple(sorted(found, key=lambda window: window.start))


def last_start(window: Window) -> datetime:
    """The last whole second at which a session may begin in it."""
    return max(window.start, window.end - SECOND)


def expand(recurring: Recurring, since: datetime, until: datetime) -> Iterator[Window]:
    """The windows that end after `since` and start before `until`, each by the zone's clock of that day."""
    tz = zone_of(recurring.zone)
    begins, ends = time.fromisoformat(recurring.begins), time.fromisoformat(recurring.ends)
    stop = until if recurring.until is None else min(until, recurring.until)
    day = since.astimezone(tz).date() - timedelta(days=1)  # last night's window may still be open
    last = stop.astimezone(tz).date()
    while day <= last:
        if day.weekday() in recurring.days:
            window = _on(day, begins, ends, tz)
            if window is not None and window.end > since and window.start < stop:
                yield window
        day += timedelta(days=1)


def _on(day: date, begins: time, ends: time, tz: ZoneInfo) -> Window | None:
    ends_on = day if ends > begins else day + timedelta(days=1)
    start = datetime.combine(day, begins, tz).astimezone(UTC)
    end = datetime.combine(ends_on, ends, tz).astimezone(UTC)
    return Window(start, end) if end > start else None  # the clock may jump over the whole window
