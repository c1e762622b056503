"""Converts views to JSON and back, by the types of their dataclasses."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")
Read = Callable[[Any], Any]
UNITS = {"Y": "days", "W": "weeks", "D": "days", "H": "hours", "M": "minutes", "S": "seconds"}


def read(view: type[T], value: Any) -> T:
    """Build a view from a JSON value; unknown fields, which a newer service may have added, are ignored."""
    kind: Any = view
    made: T = _reader(kind)(value)
    return made


def plain(value: Any) -> Any:
    """Return a view, or a collection of views, as a JSON value."""
    write = _WRITERS[type(value)]
    return value if write is None else write(value)


class _Writers(dict[type, Read | None]):
    """The function that writes values of a type, or None to write them unchanged; cached per type for speed."""

    def __missing__(self, kind: type) -> Read | None:
        write = self[kind] = _find_writer(kind)
        return write


_WRITERS = _Writers()


def _find_writer(kind: type) -> Read | None:
    if is_dataclass(kind):
        return partial(_write_fields, tuple(field.name for field in fields(kind)))
    if issubclass(kind, datetime):
        return instant_text
    if issubclass(kind, timedelta):
        return duration_iso
    if issubclass(kind, dict):
        return _write_dict
    return _write_list if issubclass(kind, list | tuple) else None


def _write_fields(names: tuple[str, ...], value: Any) -> dict[str, Any]:
    made = {}
    for name in names:
        item = getattr(value, name)
        write = _WRITERS[type(item)]
        made[name] = item if write is None else write(item)
    return made


def _write_dict(value: dict[Any, Any]) -> dict[Any, Any]:
    return {key: plain(item) for key, item in value.items()}


def _write_list(value: Iterable[Any]) -> list[Any]:
    return [plain(item) for item in value]


def read_instant(text: str) -> datetime:
    """Parse an ISO 8601 instant to an aware datetime in UTC."""
    instant = datetime.fromisoformat(text)
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


def instant_text(instant: datetime) -> str:
    """Format an instant as ISO 8601 in UTC, with a Z."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def read_duration(text: str) -> timedelta:
    """Parse an ISO 8601 duration, as services write it; a year is 365 days, and months aren't supported."""
    duration, number = timedelta(0), ""
    for letter in text.lstrip("-").removeprefix("P"):
        if letter in UNITS:
            duration += timedelta(**{UNITS[letter]: float(number) * (365 if letter == "Y" else 1)})
            number = ""
        elif letter != "T":
            number += letter
    return -duration if text.startswith("-") else duration


def duration_iso(duration: timedelta) -> str:
    """Format a duration as ISO 8601: days, hours, minutes, seconds."""
    sign, whole = ("-", -duration) if duration < timedelta(0) else ("", duration)
    minutes, seconds = divmod(whole.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{whole.microseconds:06}".rstrip("0") if whole.microseconds else ""
    parts = ((str(hours), "H"), (str(minutes), "M"), (f"{seconds}{fraction}", "S"))
    time = "".join(f"{number}{unit}" for number, unit in parts if number != "0")
    date = f"{whole.days}D" if whole.days else ""
    return f"{sign}P{date}T{time}" if time else f"{sign}P{date}" if date else "PT0S"


@cache
def _reader(kind: Any) -> Read:
    if kind is datetime:
        return read_instant
    if kind is timedelta:
        return read_duration
    if is_dataclass(kind):
        return _dataclass_reader(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is tuple:
        return _tuple_reader(_reader(inner[0]))
    if origin in (Union, types.UnionType):
        return _optional_reader(next(_reader(part) for part in inner if part is not type(None)))
    return _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


def _tuple_reader(item: Read) -> Read:
    return lambda values: tuple(map(item, values))


def _optional_reader(item: Read) -> Read:
    return lambda value: None if value is None else item(value)


def _dataclass_reader(kind: Any) -> Read:
    hints = get_type_hints(kind, vars(sys.modules[kind.__module__]))
    readers = {field.name: _reader(hints[field.name]) for field in fields(kind)}
    return lambda values: kind(**{name: item(values[name]) for name, item in readers.items() if name in values})
