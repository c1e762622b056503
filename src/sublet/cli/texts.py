"""Times and amounts for people: rounded, in local time, and relative to now."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from sublet.kernel.texts import describe_duration

if TYPE_CHECKING:
    from sublet.annexes.views.annexes import CostView
    from sublet.booking.views.quotes import QuoteView
    from sublet.systems.model.allocation import Cost

SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

DAY, TIME = r"\d{4}-\d\d-\d\d", r"\d\d:\d\d(?::\d\d)?"
INSTANT = (  # as the service writes them, but not in file names or intervals; compiled on use
    rf"(?P<at>\bat )?(?<![\w./-])(?P<day>{DAY})[T ](?P<time>{TIME})"
    rf"(?:Z(?![\w/-]|\.\w)| UTC\b| to (?={DAY} {TIME} UTC\b))"
)
NAMED_DAY = r"\b\d\d:\d\d on [A-Z][a-z]+day \d{1,2} [A-Z][a-z]+, UTC\b"  # the time in an offer's reason


def length(duration: timedelta, units: int = 2) -> str:
    """Return a duration in at most `units` units: `10 min`, `1 h 30 min`, `8 d`."""
    return describe_duration(duration, units)


def size(count: int) -> str:
    """Return a size to three digits: `2 GiB`, `1.5 TiB`, `312 B`."""
    amount, unit = float(count), 0
    while amount >= 1024 and unit < len(SIZES) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{amount:.3g} {SIZES[unit]}" if amount < 1000 else f"{amount:.0f} {SIZES[unit]}"


def moment(instant: datetime | None, now: datetime, zone: tzinfo | None = None) -> str:
    """Return a local time with as much of the date as needed: `today 14:05`, `Mon 17 Nov 09:00`."""
    return f"{_day(instant, now, zone)} {instant.astimezone(zone):%H:%M}" if instant else ""


def at_moment(instant: datetime, now: datetime, zone: tzinfo | None = None) -> str:
    """Return a local time for use in a sentence: `today at 14:05`, `on Mon 17 Nov at 09:00`."""
    day = _day(instant, now, zone)
    return f"{'on ' if ' ' in day else ''}{day} at {instant.astimezone(zone):%H:%M}"


def _day(instant: datetime, now: datetime, zone: tzinfo | None) -> str:
    local, today = instant.astimezone(zone), now.astimezone(zone)
    near = {0: "today", 1: "tomorrow"}.get((local.date() - today.date()).days)
    year = "" if abs(local - today) < timedelta(days=180) else f" {local:%Y}"
    return near or f"{local:%a} {local.day} {local:%b}{year}"


def away(instant: datetime, now: datetime, units: int = 2) -> str:
    """Return the distance from now: `now`, `in 5 min`, `2 h ago`."""
    distance = instant - now
    if abs(distance) < timedelta(seconds=5):
        return "now"
    return f"in {length(distance, units)}" if distance > timedelta(0) else f"{length(distance, units)} ago"


def when(instant: datetime | None, now: datetime, zone: tzinfo | None = None) -> str:
    """Return a local time and its distance from now: `today 14:05 (in 5 min)`."""
    return f"{moment(instant, now, zone)} ({away(instant, now)})" if instant else ""


def window_text(interval: str) -> str:
    """Return an interval in UTC as local times, `between tomorrow 09:00 and 12:00 CET`; "" if it can't be parsed."""
    from sublet.booking.model.windows import parse_interval  # time zones take long to load
    from sublet.kernel.errors import BadRequest

    try:
        window = parse_interval(interval)
    except BadRequest:
        return ""
    now = datetime.now(UTC)
    first, last = window.start.astimezone(), window.end.astimezone()
    end = f"{last:%H:%M}" if first.date() == last.date() else moment(window.end, now)
    return f"between {moment(window.start, now)} and {end} {last:%Z}"


def describe_price(cost: QuoteView) -> str:
    """Return a price or cost: `0.12 EUR`, `3–5 kWh`."""
    least, most = (
        f"{number:.2g}" if 0 < number < 1 else f"{number:.2f}".rstrip("0").rstrip(".")
        for number in (cost.min, cost.max)
    )
    unit = cost.description.removeprefix("in ")
    return f"{most} {unit}".rstrip() if least == most else f"{least}–{most} {unit}".rstrip()


def costs(cost: Cost | CostView, project: str = "") -> str:
    """Return what a lease costs: `4 node-hours, 512 core-hours: 512 SU of abc123`."""
    hours = (("node-hour", cost.node_hours), ("core-hour", cost.core_hours), ("GPU-hour", cost.gpu_hours))
    used = [f"{round_number(amount)} {noun}{'' if amount == 1 else 's'}" for noun, amount in hours if amount]
    used = used or ["nothing yet"]
    whose = f" of {project}" if project else ""
    charge = "" if cost.charged is None else f": {round_number(cost.charged)} {cost.coin}{whose}"
    remark = f" ({cost.remark})" if cost.remark else ""
    return f"{', '.join(used)}{charge}{remark}"


def round_number(amount: float) -> str:
    """Return a number to two digits, or as an integer if it is whole or large."""
    return f"{amount:.0f}" if amount >= 100 or amount == round(amount) else f"{amount:.2g}"


def with_local_times(text: str, now: datetime | None = None) -> str:
    """Return a sentence of the service with its instants in local time."""
    return re.sub(INSTANT, lambda match: _local_instant(match, now or datetime.now(UTC)), text)


def _local_instant(match: re.Match[str], now: datetime) -> str:
    to = " to " if match[0].endswith(" to ") else ""
    try:
        instant = datetime.fromisoformat(f"{match['day']}T{match['time']}Z")
    except ValueError:
        return match[0]  # it only looks like one
    return (at_moment if match["at"] else moment)(instant, now) + to


def with_local_start(why: str, start: datetime, now: datetime) -> str:
    """Return the reason of an offer with its start in local time."""
    return re.sub(NAMED_DAY, lambda _: moment(start, now), why)
