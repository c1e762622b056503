"""Start times in a window that people would choose: whole hours, quarters of an hour, the same time next day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sublet.booking.model.request import Request
from sublet.kernel.texts import describe_duration

SECOND = timedelta(seconds=1)
MINUTE, QUARTER, HOUR, DAY = timedelta(minutes=1), timedelta(minutes=15), timedelta(hours=1), timedelta(days=1)
SPREAD = 7 * DAY  # start times are spread over at most this much of a window
STEPS = (QUARTER, QUARTER * 2, HOUR, HOUR * 2, HOUR * 3, HOUR * 4, HOUR * 6, HOUR * 12, DAY, DAY * 2)

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True, slots=True)
class Opening:
    """A window, or a part of one, and the last moment at which an offer in it may start."""

    start: datetime
    end: datetime
    last: datetime


def parts(opening: Opening, at_most: int) -> Iterator[Opening]:
    """Cut an opening into about so many parts; all but the first begin at a quarter of an hour."""
    length = min(opening.end - opening.start, SPREAD)
    if length < 2 * QUARTER:
        yield opening
        return
    least = HOUR if length >= 2 * HOUR else QUARTER
    step = next((step for step in STEPS if step >= least and -(-length // step) <= at_most), STEPS[-1])
    start, end = opening.start, opening.start + length
    while start < end:
        stop = find_named_time(start, step)
        yield Opening(start, min(stop, opening.end), opening.last)
        start = stop


def find_named_time(time: datetime, step: timedelta) -> datetime:
    """Return the time that is one step after the last quarter of an hour."""
    midnight = time.replace(hour=0, minute=0, second=0, microsecond=0)
    return time + step - (time - midnight) % QUARTER


def time_in_words(time: datetime) -> str:
    """Format a time as `09:00 on Monday 16 November`, whatever the machine's locale."""
    day = f"{DAYS[time.weekday()]} {time.day} {MONTHS[time.month - 1]}"
    return f"{time.hour:02}:{time.minute:02} on {day}"


def describe_asked_times(request: Request) -> str:
    """Describe the requested times briefly."""
    times = [f"{instant(window.start)}/{instant(window.end)}" for window in request.windows]
    times += [f"{r.begins}-{r.ends} {r.zone}" for r in request.recurring]
    return ", ".join(times[:3]) or "as soon as possible"


def instant(time: datetime) -> str:
    """Format a time in UTC, to the second."""
    return time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def roughly(length: timedelta) -> str:
    """Describe a length of time, rounded to minutes or hours."""
    unit = MINUTE if length < DAY else HOUR
    return describe_duration(max(round(length / unit), 1) * unit)


def whole_seconds(length: timedelta) -> timedelta:
    """Round a length of time up to whole seconds."""
    return -(-length // SECOND) * SECOND


def next_second(time: datetime) -> datetime:
    """Round a time up to a whole second."""
    return time.replace(microsecond=0) + SECOND if time.microsecond else time
