"""The carbon intensity of electricity: grams of CO2 per kWh, by the hour.

It is read from CSV (`2026-11-17T19:00:00Z,212`, or `19,212` for an hour of every day, in UTC), or from the JSON of
grid services: a list of entries, also under `data`, `history` or `forecast`, each with a time (`time`, `datetime` or
`from`) and a number (`intensity`, `carbonIntensity` or `value`; of an object `actual`, else `forecast`).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

HOUR = timedelta(hours=1)
MOST_HOURS = 24 * 31  # of a longer time, the first month counts as typical
TIMES = ("time", "datetime", "from")
NUMBERS = ("intensity", "carbonIntensity", "value")
LISTS = ("data", "history", "forecast")


@dataclass(frozen=True, slots=True)
class Intensity:
    """The intensity of known hours; an unknown hour has the mean of its hour of the day."""

    hours: Mapping[datetime, float] = field(default_factory=dict)  # by the start of the hour, in UTC
    daily: Mapping[int, float] = field(default_factory=dict)  # by the hour of the day, in UTC

    def at(self, time: datetime) -> float:
        """Return the intensity in the hour of this time."""
        hour = time.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        if hour in self.hours:
            return self.hours[hour]
        if hour.hour in self.daily:
            return self.daily[hour.hour]
        return sum(self.daily.values()) / len(self.daily)

    @property
    def least(self) -> float:
        """The lowest known intensity."""
        return min((*self.hours.values(), *self.daily.values()))

    def mean(self, start: datetime, length: timedelta) -> float:
        """Return the mean intensity over a time, each hour weighted by how much of it is included."""
        end = start + min(max(length, timedelta(seconds=1)), MOST_HOURS * HOUR)
        total, time = 0.0, start
        while time < end:
            until = min(time.replace(minute=0, second=0, microsecond=0) + HOUR, end)
            total += self.at(time) * ((until - time) / HOUR)
            time = until
        return total / ((end - start) / HOUR)


def read_intensity(text: str) -> Intensity:
    """Parse a file or an HTTP answer; raise ValueError if it has no hours or impossible values."""
    entries = list(_from_json(text) if text.lstrip()[:1] in ("{", "[") else _from_csv(text))
    hours: dict[datetime, list[float]] = {}
    daily: dict[int, list[float]] = {}
    for when, grams in entries:
        if not 0 <= grams < 1e5:
            raise ValueError(f"{grams:g} is no carbon intensity in grams of CO2 for each kWh")
        if isinstance(when, datetime):
            hours.setdefault(when.astimezone(UTC).replace(minute=0, second=0, microsecond=0), []).append(grams)
        daily.setdefault(when if isinstance(when, int) else when.astimezone(UTC).hour, []).append(grams)
    if not daily:
        raise ValueError("it has no hours")
    return Intensity(_mean_of_each(hours), _mean_of_each(daily))


def _mean_of_each(values: Mapping[Any, list[float]]) -> dict[Any, float]:
    return {key: sum(some) / len(some) for key, some in values.items()}


def _from_csv(text: str) -> Iterable[tuple[datetime | int, float]]:
    for number, row in enumerate(csv.reader(io.StringIO(text)), 1):
        if len(row) < 2 or row[0].startswith("#"):
            continue
        try:
            yield _time(row[0].strip()), float(row[1])
        except ValueError as error:
            if number > 1:  # the first line may be headings
                raise ValueError(f"line {number} has no time and number: {','.join(row)}") from error


def _from_json(text: str) -> Iterable[tuple[datetime | int, float]]:
    document = json.loads(text)
    if isinstance(document, dict):
        document = next((document[name] for name in LISTS if isinstance(document.get(name), list)), [])
    for entry in document:
        if not isinstance(entry, dict):
            raise ValueError("an entry is no object with a time and a number")
        when = next((entry[name] for name in TIMES if name in entry), None)
        grams = next((entry[name] for name in NUMBERS if name in entry), None)
        if isinstance(grams, dict):
            grams = grams.get("actual") if grams.get("actual") is not None else grams.get("forecast")
        if when is None or not isinstance(grams, int | float):
            raise ValueError(f"an entry has no time and number: {json.dumps(entry)[:80]}")
        yield _time(str(when)), float(grams)


def _time(text: str) -> datetime | int:
    if text.isdecimal():
        hour = int(text)
        if hour > 23:
            raise ValueError(f"{text} is no hour of a day")
        return hour
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)
