"""Weekly schedules: `nights, weekends`, or `Mon-Fri 18:00-08:00, Sat-Sun`, in a zone's local time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WORDS = {"nights": "mon-sun 20:00-08:00", "weekends": "sat-sun", "always": "mon-sun"}
AHEAD = timedelta(days=400)  # how far ahead hours are computed
DAY = timedelta(days=1)
PART = re.compile(r"([a-z]{3})(?:-([a-z]{3}))?(?:\s+(\d\d?):(\d\d)-(\d\d?):(\d\d))?")
Hours = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Hours of the week, each listed on the day on which it begins; they may end on the next day."""

    parts: tuple[tuple[int, int, int], ...]  # a weekday from 0, and the minutes of begin and end
    zone: str = "UTC"

    def hours(self, now: datetime) -> list[Hours]:
        """Return when the schedule is in force, from the beginning of this day on, with adjoining hours merged."""
        zone = ZoneInfo(self.zone)
        first = now.astimezone(zone).date() - DAY
        begins = first_moment(now)
        pieces: list[Hours] = []
        for offset in range((AHEAD + 2 * DAY).days):
            day = first + offset * DAY
            for weekday, start, end in self.parts:
                if day.weekday() == weekday:
                    pieces.append((_moment(day, start, zone), _moment(day, end, zone)))
        kept = [(max(start, begins), min(end, begins + AHEAD)) for start, end in sorted(pieces)]
        return _join([(start, end) for start, end in kept if start < end])


def first_moment(now: datetime) -> datetime:
    """Return when the day began in UTC, so that computed hours change only once a day."""
    return now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def off_hours(schedule: Schedule, now: datetime) -> list[Hours]:
    """Return when the schedule is not in force."""
    begins = first_moment(now)
    hours = schedule.hours(now)
    edges = [begins, *(moment for pair in hours for moment in pair), begins + AHEAD]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if start < end]


def parse_schedule(text: str, zone: str = "UTC") -> Schedule:
    """Parse a schedule; raise ValueError if it is malformed or the time zone is unknown."""
    try:
        ZoneInfo(zone)
    except (ValueError, OSError, KeyError) as error:
        raise ValueError(f"there is no time zone {zone}; write one such as Europe/London") from error
    parts: list[tuple[int, int, int]] = []
    for word in text.lower().split(","):
        match = PART.fullmatch(WORDS.get(word.strip(), word.strip()))
        if match is None or match[1] not in DAYS or (match[2] or match[1]) not in DAYS:
            raise ValueError("write days and hours, as in `Mon-Fri 18:00-08:00, Sat-Sun`, or `nights, weekends`")
        start, end = _read_minutes(match[3], match[4], 0), _read_minutes(match[5], match[6], 24 * 60)
        end += 24 * 60 if end <= start else 0
        parts += [(day, start, end) for day in _list_days(match[1], match[2] or match[1])]
    return Schedule(tuple(sorted(set(parts))), zone)


def _list_days(first: str, last: str) -> list[int]:
    start, end = DAYS.index(first), DAYS.index(last)
    return [day % len(DAYS) for day in range(start, end + 1 + (len(DAYS) if end < start else 0))]


def _read_minutes(hour: str | None, minute: str | None, otherwise: int) -> int:
    if hour is None or minute is None:
        return otherwise
    minutes = int(hour) * 60 + int(minute)
    if int(minute) >= 60 or minutes > 24 * 60:
        raise ValueError(f"{hour}:{minute} is no time of a day")
    return minutes


def _moment(day: date, minutes: int, zone: ZoneInfo) -> datetime:
    """Return a wall-clock time in UTC, which depends on clock changes on that day."""
    days, rest = divmod(minutes, 24 * 60)
    return datetime.combine(day + days * DAY, time(rest // 60, rest % 60), zone).astimezone(UTC)


def _join(hours: Sequence[Hours]) -> list[Hours]:
    joined: list[Hours] = []
    for start, end in hours:
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
