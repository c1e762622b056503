"""Times in everyday words: `tonight`, `next tuesday 9am`, `Tue 1 Dec 09:00`, `in 2 hours`, `after friday 17:00`.

Each is a window in the time zone of `now`, so callers pass `now` in the zone of the person who wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from sublet.booking.model.amounts import parse_duration
from sublet.booking.model.request import Window
from sublet.booking.model.spoken_dates import LONGEST, parse_named_date, weekday
from sublet.kernel.errors import BadAmount

SLACK = timedelta(minutes=5)  # how much later than a single instant a start may be; nobody accepts offers faster
OPEN_END = timedelta(days=30)  # how far `after` reaches
DAY, WEEK = timedelta(days=1), timedelta(days=7)
DAWN = time(6)
# Parts of a day: begin and end; an end before the begin is on the next day.
PARTS = {
    "morning": (time(6), time(12)),
    "afternoon": (time(12), time(18)),
    "evening": (time(18), time(0)),
    "night": (time(18), DAWN),
}
NAMED_HOURS = {"noon": time(12), "midday": time(12)}
FILLERS = frozenset({"at", "on", "the"})
AFTER = frozenset({"after", "from", "since"})
BEFORE = frozenset({"before", "by", "until"})
_CLOCK = re.compile(r"([0-9]{1,2})(?::([0-9]{2}))?(am|pm)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SPOKEN_NUMBERS = {"a": "1", "an": "1", "half": "0.5"} | {
    word: str(number)
    for number, word in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 1)
}


class Hours(NamedTuple):
    """A time of day, or a range of two; 24:00 begins after its day."""

    begins: time
    ends: time | None
    after_day: bool = False


def parse_spoken(words: Sequence[str], now: datetime) -> Window | None:
    """Parse words as a window in the time zone of `now`; return None if they name no time."""
    spoken = [word.lower().rstrip(",") for word in words if word.lower().rstrip(",") not in FILLERS]
    match spoken:
        case []:
            return None
        case ["not", "before", *rest]:
            return _after(rest, now)
        case [first, *rest] if first in AFTER:
            return _after(rest, now)
        case [first, *rest] if first in BEFORE:
            window = parse_spoken(rest, now)
            return window and Window(min(now, window.start).astimezone(UTC), window.start)
        case ["in", *length] if length:
            return _in(length, now)
    return _day_and_hours(spoken, now)


def _after(words: list[str], now: datetime) -> Window | None:
    window = parse_spoken(words, now)
    return window and Window(window.start, window.start + OPEN_END)


def _in(words: list[str], now: datetime) -> Window:
    fillers = ("and", "a", "an") if words[0] == "half" else ("and",)
    plain = [words[0], *(word for word in words[1:] if word not in fillers)]
    start = now.astimezone(UTC) + parse_duration("".join([_SPOKEN_NUMBERS.get(plain[0], plain[0]), *plain[1:]]))
    return Window(start, start + SLACK)


def _day_and_hours(words: list[str], now: datetime) -> Window | None:
    """Parse a day, a time of day, or both in either order; return None for other words."""
    for count in range(min(len(words), LONGEST), -1, -1):
        for day_words, rest in ((words[:count], words[count:]), (words[len(words) - count :], words[: -count or None])):
            day, hours = _read_day(day_words, now), _read_hours(rest)
            if (day or not day_words) and (hours or not rest):
                return _window(day, hours, now)
    return None


@dataclass(frozen=True)
class Days:
    """One or more days: the first, how many, how much later they come again if they are over, and which part."""

    first: date
    count: int = 1
    again: timedelta | None = None
    part: str = ""


def _read_day(words: list[str], now: datetime) -> Days | None:
    today = now.date()
    match words:
        case ["today"]:
            return Days(today)
        case ["tonight"]:
            if now.time() >= DAWN:
                return Days(today, part="night")
            return Days(today - DAY, part="night", again=DAY)  # before dawn it is still last night
        case ["tomorrow"]:
            return Days(today + DAY)
        case ["this", part] if part in PARTS:
            return Days(today, part=part)
        case [text] if _DATE.fullmatch(text):
            return Days(_a_date(text))
        case ["day", "after", "tomorrow"]:
            return Days(today + 2 * DAY)
    if named := parse_named_date(words, today):
        return Days(named)
    return _read_weekday(words, today)


def _read_weekday(words: list[str], today: date) -> Days | None:
    """Parse a weekday, week or weekend; `next` is always after today."""
    match words:
        case ["next", "week"]:
            return Days(today + timedelta(days=7 - today.weekday()), 7)
        case ["weekend"] | ["this", "weekend"]:
            return Days(today + timedelta(days=5 - today.weekday()), 2)
        case ["next", "weekend"]:
            return Days(_next(5, today), 2)
        case ["next", name] if (number := weekday(name)) is not None:
            return Days(_next(number, today))
        case [name] | ["this", name] if (number := weekday(name)) is not None:
            return Days(today + timedelta(days=(number - today.weekday()) % 7), again=WEEK)
    return None


def _next(number: int, today: date) -> date:
    return today + timedelta(days=(number - today.weekday() - 1) % 7 + 1)


def _a_date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise BadAmount(text=text, what="a day of the calendar", example="one like 2026-12-01") from None


def _read_hours(words: list[str]) -> Hours | None:
    """Parse hours such as `9am`, `9 am`, `14:00`, `noon`, `morning`, `9am-5pm` or `from 9 to 17:30`."""
    if not words:
        return None
    text = "".join(words).removeprefix("from").removeprefix("between").replace("–", "-")
    if text in PARTS:
        return Hours(*PARTS[text])
    first, dash, last = text.replace("until", "-").replace("to", "-").replace("and", "-").partition("-")
    begins, ends = parse_clock(first, alone=not dash), parse_clock(last) if dash else None
    if begins is None or (dash and ends is None):
        return None
    return Hours(begins, ends, after_day=first == "24:00")


def parse_clock(text: str, *, alone: bool = False) -> time | None:
    """Parse a time of day; with `alone`, a bare number is not a time. Return None for other text."""
    if text in NAMED_HOURS:
        return NAMED_HOURS[text]
    match = _CLOCK.fullmatch(text)
    if match is None or (alone and not (match[2] or match[3])):
        return None
    hour, minute = int(match[1]), int(match[2] or 0)
    if match[3]:
        hour = hour % 12 + (12 if match[3] == "pm" else 0) if 1 <= hour <= 12 else 99
    if (hour, minute) == (24, 0):
        hour = 0
    if hour > 23 or minute > 59:
        raise BadAmount(text=text, what="a time of day", example="09:00, 14:30 or 9am")
    return time(hour, minute)


def _window(day: Days | None, hours: Hours | None, now: datetime) -> Window:
    """Return the first such window that isn't over; one that is already open begins now."""
    wanted = day or Days(now.date(), again=DAY)
    if day and hours and (hours.after_day or (wanted.part == "night" and hours.begins < DAWN)):
        wanted = replace(wanted, first=wanted.first + DAY)  # `tonight 2am` is after midnight, as is `friday 24:00`
    window = _on(wanted, hours, now.tzinfo or UTC)
    if wanted.again and window.end <= now:
        window = _on(replace(wanted, first=wanted.first + wanted.again), hours, now.tzinfo or UTC)
    start = now.astimezone(UTC) if window.start < now < window.end else window.start
    return Window(start, window.end)


def _on(day: Days, hours: Hours | None, zone: tzinfo) -> Window:
    if hours is None and day.part:
        hours = Hours(*PARTS[day.part])
    if hours is None:
        return Window(_instant(day.first, time(0), zone), _instant(day.first + day.count * DAY, time(0), zone))
    begins = _instant(day.first, hours.begins, zone)
    if hours.ends is None:
        return Window(begins, begins + SLACK)
    last = day.first if hours.ends > hours.begins else day.first + DAY
    return Window(begins, max(begins, _instant(last, hours.ends, zone)))


def _instant(day: date, clock: time, zone: tzinfo) -> datetime:
    """Return a wall-clock time in UTC; a skipped time moves later by the gap, and a repeated one is its first."""
    return datetime.combine(day, clock, zone).astimezone(UTC)
