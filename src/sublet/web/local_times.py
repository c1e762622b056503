"""Converts times in sentences and forms to the visitor's time zone, so that a page has one clock."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from markupsafe import Markup, escape

from sublet.booking.model.amounts import parse_duration
from sublet.booking.model.starts import MONTHS
from sublet.booking.model.windows import zone_of
from sublet.kernel.errors import BadAmount
from sublet.kernel.texts import describe_duration
from sublet.web.words import Clock, machine, utc

DAY, TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}(?::[0-9]{2})?(?:\.[0-9]+)?"
OFFSET = r"(?: ?UTC\b|Z\b|[+-][0-9]{2}:[0-9]{2}\b)"
INSTANT = rf"{DAY}[ T]{TIME}{OFFSET}"
LENGTH = r"P[0-9DTHMSW.]+\b"
TOLD = re.compile(
    rf"(?P<at>\bat )?(?:(?P<start>{INSTANT})/(?:(?P<end>{INSTANT})|(?P<length>{LENGTH}))"
    rf"|(?P<first>{DAY} {TIME}) to (?P<last>{DAY} {TIME} UTC\b)"
    rf"|(?P<time>{TIME}) on (?P<date>[A-Z][a-z]+day [0-9]{{1,2}} [A-Z][a-z]+), (?P<zone>[A-Za-z0-9_+/-]+)"
    rf"|(?P<instant>{INSTANT})|(?<![0-9:T-])(?P<hour>{TIME} UTC\b))"
)


def localize(text: object, clock: Clock) -> Markup:
    """Return a sentence with the times in it converted to the visitor's zone; UTC is in each one's title."""
    plain, made, after = str(text), Markup(), 0
    for match in TOLD.finditer(plain):
        made += escape(plain[after : match.start()]) + _element(match, clock)
        after = match.end()
    return made + escape(plain[after:])


def _element(match: re.Match[str], clock: Clock) -> Markup:
    part = match.groupdict()
    say = clock.at_moment if part["at"] else clock.moment
    try:
        if part["instant"]:
            return _moment(_read(part["instant"]), say)
        if part["time"]:
            return _moment(_in_words(part["time"], part["date"], part["zone"], clock.now), say)
        if part["hour"]:
            return _moment(_near(part["hour"], clock.now), say)
        if part["length"]:
            start = _moment(_read(part["start"]), say)
            return start + escape(f" for {describe_duration(parse_duration(part['length']))}")
        return _span(_read(part["start"] or f"{part['first']} UTC"), _read(part["end"] or part["last"]), clock)
    except (ValueError, OverflowError, BadAmount):
        return escape(match[0])  # it only looks like one


def _read(text: str) -> datetime:
    return datetime.fromisoformat(re.sub(r" ?UTC$", "Z", text)).astimezone(UTC)


def _near(text: str, now: datetime) -> datetime:
    """Return a time of day in UTC, on the day that makes it closest to now."""
    hour = datetime.fromisoformat(f"{now.astimezone(UTC):%Y-%m-%d}T{text.removesuffix(' UTC')}").replace(tzinfo=UTC)
    return min((hour + timedelta(days=days) for days in (-1, 0, 1)), key=lambda time: abs(time - now))


def _in_words(hour: str, date: str, zone: str, now: datetime) -> datetime:
    """Return a time such as `09:00` on `Monday 16 November`, in the year that makes it closest to now."""
    _, day, month = date.split()
    clock = zone_of(zone)
    times = [
        datetime.combine(datetime(year, MONTHS.index(month) + 1, int(day)), time.fromisoformat(hour), clock)
        for year in (now.year - 1, now.year, now.year + 1)
    ]
    return min(times, key=lambda each: abs(each - now)).astimezone(UTC)


def _moment(instant: datetime, say: Callable[[datetime], str]) -> Markup:
    made = Markup('<time datetime="{}" title="{}">{}</time>')
    return made.format(machine(instant), utc(instant), say(instant))


def _span(start: datetime, end: datetime, clock: Clock) -> Markup:
    made = Markup('<time datetime="{}/{}" title="{} to {}">{}</time>')
    return made.format(machine(start), machine(end), utc(start), utc(end), clock.span(start, end))


def show_in_zone(text: str, zone: ZoneInfo) -> str:
    """Return an interval in UTC as it would be typed in a time zone; any other text is unchanged."""
    try:
        parts = [part if part[:1] in "Pp" else _read(part).astimezone(zone).isoformat() for part in text.split("/")]
    except ValueError:
        return text
    return "/".join(parts)
