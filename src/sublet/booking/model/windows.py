"""When a session may begin: ISO 8601 intervals, times in words, and recurring windows."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import replace
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

from sublet.booking.model.amounts import parse_duration, quote_value
from sublet.booking.model.request import Recurring, Request, Window
from sublet.booking.model.spoken_times import SLACK, parse_clock, parse_spoken
from sublet.kernel.errors import BadAmount

LONGEST_WINDOW = timedelta(days=36_525)
SECOND = timedelta(seconds=1)
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SETS = {"daily": range(7), "weekdays": range(5), "weekend": range(5, 7), "weekends": range(5, 7)}
_HOURS = re.compile(r"([0-9]{1,2}(?::[0-9]{2})?(?:am|pm)?)-([0-9]{1,2}(?::[0-9]{2})?(?:am|pm)?)", re.IGNORECASE)
_INSTANT = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}([T ].*)?")
_CALENDAR = re.compile(r"P(?=[0-9]+[YM])(?:(?P<years>[0-9]{1,4})Y)?(?:(?P<months>[0-9]{1,5})M)?", re.IGNORECASE)
_EXAMPLE = (
    "now, in 2 hours, within 2h, 09:00, tonight, tomorrow, tomorrow 9am, tomorrow 09:00-12:00, next tuesday, "
    "after friday 17:00, 1 Dec 14:00, 2026-12-01 14:00, mon-wed 09:00-12:00 Europe/London, or 2026-12-01T09:00:00Z/PT3H"
)
FROM_NOW = frozenset({"now", "within", "in"})  # a start that begins with one of these names no time of day
_STAMP = "%Y-%m-%dT%H:%M:%SZ"
_SHORT_ZONES = frozenset({"utc", "gmt", "z"})


def parse_instant(text: str) -> datetime:
    """Parse a point in time as UTC; without an offset it is taken to be UTC, and a date is its midnight."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        example = "one like 2026-12-01T09:00+01:00"
        raise BadAmount(text=quote_value(text), what="a point in time", example=example) from None


def parse_interval(text: str) -> Window:
    """Parse `start/end`, `start/duration` or `duration/end` as a window."""
    first, slash, second = text.strip().partition("/")
    if not slash:
        bare = _INSTANT.fullmatch(first) is not None
        what = "an interval but a single instant" if bare else "an interval"
        raise BadAmount(text=quote_value(text), what=what, example=f"{first}/PT0S" if bare else _EXAMPLE)
    try:
        if second[:1] in ("P", "p"):
            start = parse_instant(first)
            return Window(start, _move(start, second, 1))
        end = parse_instant(second)
        if first[:1] in ("P", "p"):
            return Window(_move(end, first, -1), end)
        start = parse_instant(first)
    except OverflowError:
        raise BadAmount(text=quote_value(text), what="an interval within this calendar", example=_EXAMPLE) from None
    if end < start:
        raise BadAmount(
            text=quote_value(text), what="an interval: it ends before it starts", example="the earlier first"
        )
    return Window(start, end)


def _move(time: datetime, length: str, sign: int) -> datetime:
    """Move a time by an ISO 8601 duration, forwards or backwards; years and months follow the calendar."""
    match = _CALENDAR.match(length)
    if match is None:
        return time + sign * parse_duration(length, LONGEST_WINDOW)
    months = int(match["years"] or 0) * 12 + int(match["months"] or 0)
    year, month = divmod(time.year * 12 + time.month - 1 + sign * months, 12)
    if not MINYEAR <= year <= MAXYEAR:
        raise OverflowError
    moved = time.replace(year=year, month=month + 1, day=min(time.day, monthrange(year, month + 1)[1]))
    rest = length[match.end() :]
    return moved + sign * parse_duration(f"P{rest}", LONGEST_WINDOW) if rest else moved


def parse_start(text: str, now: datetime) -> Window | Recurring:
    """Parse an interval, or a time in words, as a window or as recurring windows.

    Words without a time zone are read in the zone of `now`; an interval without one is in UTC.
    """
    words = text.split()
    if len(words) == 1 and "/" in text:
        return parse_interval(text)
    match [word.lower() for word in words]:
        case ["now"]:
            return Window(now.astimezone(UTC), now.astimezone(UTC) + SLACK)
        case ["within", *length] if length:
            return Window(now.astimezone(UTC), now.astimezone(UTC) + parse_duration("".join(length)))
        case [day, hours, *_] if _HOURS.fullmatch(hours):
            return _days_and_hours(day, hours, words[2:], text, now)
    try:
        window = _instant_in(text.strip(), now) or _read_spoken_window(words, now)
    except OverflowError:
        raise BadAmount(text=quote_value(text), what="a time within this calendar", example=_EXAMPLE) from None
    if window is None:
        raise BadAmount(text=quote_value(text), what="a time to start", example=_EXAMPLE)
    return window


def _instant_in(text: str, now: datetime) -> Window | None:
    """Parse an ISO 8601 instant as a window that begins there; return None for other text."""
    if not _INSTANT.fullmatch(text) or len(text) <= len("2026-12-01"):
        return None
    try:
        instant = datetime.fromisoformat(text)
        start = (instant if instant.tzinfo else instant.replace(tzinfo=now.tzinfo)).astimezone(UTC)
    except ValueError:
        return None
    return Window(start, start + SLACK)


def _read_spoken_window(words: list[str], now: datetime) -> Window | None:
    """Parse a time in words, which may end in a time zone; return None for other words."""
    window = parse_spoken(words, now)
    if window is not None or len(words) < 2:
        return window
    zone = zone_of(words[-1]) if "/" in words[-1] else _zone_named(words[-1])
    return parse_spoken(words[:-1], now.astimezone(zone)) if zone else None


def _zone_named(word: str) -> ZoneInfo | None:
    try:
        return zone_of("UTC" if word.lower() in _SHORT_ZONES else word)
    except BadAmount:
        return None


def _days_and_hours(day: str, hours: str, rest: list[str], text: str, now: datetime) -> Window | Recurring:
    begins, ends = _clock(hours)
    until = None
    if len(rest) >= 2 and rest[-2].lower() == "until":
        until = parse_instant(rest[-1])
        rest = rest[:-2]
    if len(rest) > 1:
        raise BadAmount(text=quote_value(text), what="a time to start", example=_EXAMPLE)
    tz: tzinfo = zone_of(rest[0]) if rest else now.tzinfo or UTC
    on = _one_day(day, now.astimezone(tz).date())
    if on is None:
        return Recurring(_weekdays(day, text), begins, ends, _name_of(tz, text), until)
    if until is not None:
        raise BadAmount(text=quote_value(text), what="a time that comes again", example="weekdays instead of a date")
    window = _on(on, time.fromisoformat(begins), time.fromisoformat(ends), tz)
    if window is None:
        raise BadAmount(text=quote_value(text), what="a time that exists on that day", example=_EXAMPLE)
    return window


def _name_of(zone: tzinfo, text: str) -> str:
    """Return a zone's name, which recurring hours need because of clock changes; raise BadAmount if it has none."""
    if isinstance(zone, ZoneInfo) and zone.key:
        return zone.key
    if zone.utcoffset(datetime(2026, 1, 1)) == zone.utcoffset(datetime(2026, 7, 1)) == timedelta(0):
        return "UTC"
    raise BadAmount(text=quote_value(text), what="a time to start without a time zone", example=f"{text} Europe/London")


def _clock(hours: str) -> tuple[str, str]:
    first, _, last = hours.lower().partition("-")
    begins, ends = parse_clock(first), parse_clock(last)
    if begins is None or ends is None:
        raise BadAmount(text=quote_value(hours), what="a time of day", example="09:00-12:00")
    return f"{begins:%H:%M}", f"{ends:%H:%M}"


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
            raise BadAmount(text=quote_value(whole), what="a time to start", example=_EXAMPLE)
        start = DAYS.index(first[:3])
        length = (DAYS.index(last[:3]) - start) % 7 if dash else 0
        days.update((start + n) % 7 for n in range(length + 1))
    return tuple(sorted(days))


def zone_of(name: str) -> ZoneInfo:
    """Return the time zone with that IANA name; raise BadAmount if there is none."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise BadAmount(text=quote_value(name), what="a time zone", example="one like Europe/London, or UTC") from None


def windows_of(request: Request, now: datetime, horizon: timedelta) -> tuple[Window, ...]:
    """Return the windows of a request that aren't over, up to the horizon, the earliest first."""
    until = now + horizon
    windows = [window for window in request.windows if last_start(window) >= now and window.start < until]
    for recurring in request.recurring:
        windows.extend(window for window in expand(recurring, now, until) if last_start(window) >= now)
    return tuple(sorted(windows, key=lambda window: window.start))


def list_named_windows(request: Request, now: datetime, horizon: timedelta) -> tuple[Window, ...]:
    """Return the windows that a request lists one by one, without recurring ones."""
    return windows_of(replace(request, recurring=()), now, horizon)


def admits(window: Window, start: datetime) -> bool:
    """Whether a session may begin at this time in a window."""
    return window.start <= start <= last_start(window)


def last_start(window: Window) -> datetime:
    """Return the last whole second at which a session may begin in a window."""
    return max(window.start, window.end - SECOND)


def expand(recurring: Recurring, since: datetime, until: datetime) -> Iterator[Window]:
    """Yield the windows that end after `since` and start before `until`, each by the zone's clock of that day."""
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


def _on(day: date, begins: time, ends: time, tz: tzinfo) -> Window | None:
    ends_on = day if ends > begins else day + timedelta(days=1)
    start = datetime.combine(day, begins, tz).astimezone(UTC)
    end = datetime.combine(ends_on, ends, tz).astimezone(UTC)
    return Window(start, end) if end > start else None  # the clock may jump over the whole window


def pin_start(text: str, now: datetime) -> str:
    """Rewrite a start time so that it means the same wherever it is read: in UTC, or with its time zone.

    Words that count from now, and intervals, stay as they are.
    """
    words = text.split()
    if not words or words[0].lower() in FROM_NOW or (len(words) == 1 and "/" in text):
        return text
    start = parse_start(text, now)
    if isinstance(start, Window):
        return f"{start.start:{_STAMP}}/{start.end:{_STAMP}}"
    has_zone = len(words) > 2 and words[2].lower() != "until"
    return text if has_zone else " ".join([*words[:2], start.zone, *words[2:]])
