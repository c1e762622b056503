"""Readers for single values of a system's file; errors carry the path of the field."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Any

from sublet.booking.model.amounts import parse_count, parse_counts, parse_duration, parse_memory, quote_value
from sublet.booking.model.request import Range
from sublet.kernel.errors import SubletError

Path = tuple[str | int, ...]
Read = Callable[[Any, Path], Any]
_WORD = re.compile(r"[!-,.-~][!-~]*")  # printable, without spaces
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class BadField(Exception):
    """A value that can't stand where it stands."""

    def __init__(self, path: Path, detail: str) -> None:
        """Keep the path and what is wrong."""
        super().__init__(detail)
        self.path, self.detail = path, detail


def fields(value: Any, path: Path, table: Mapping[str, Read]) -> dict[str, Any]:
    """Read a map that may contain only the fields of `table`, with the reader of each."""
    for name in each(value, path):
        if name not in table:
            near = difflib.get_close_matches(name, table, n=1)
            advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(table))}."
            raise BadField((*path, name), f"there is no such field here; {advice}")
    return {name: table[name](item, (*path, name)) for name, item in value.items() if item is not None}


def each(value: Any, path: Path) -> dict[str, Any]:
    """Require a map."""
    if not isinstance(value, dict):
        raise BadField(path, f"{quote_value(value)} stands where fields are expected.")
    return value


def items(value: Any, path: Path) -> list[Any]:
    """Return a list; a single value becomes a list of one."""
    return value if isinstance(value, list) else [value]


def text(value: Any, path: Path) -> str:
    """Read a text; a number is converted."""
    if isinstance(value, bool | list | dict) or not str(value).strip():
        raise BadField(path, f"{quote_value(value)} stands where words are expected.")
    return str(value).strip()


def texts(value: Any, path: Path) -> tuple[str, ...]:
    """Read one or more texts."""
    return tuple(text(item, (*path, index)) for index, item in enumerate(items(value, path)))


def word(value: Any, path: Path) -> str:
    """Read one word that can't be mistaken for an option: a host, a user, a project."""
    read = text(value, path)
    if not _WORD.fullmatch(read):
        raise BadField(path, f"{quote_value(read)} is not one word, or begins with a dash.")
    return read


def words(value: Any, path: Path) -> tuple[str, ...]:
    """Read one or more such words."""
    return tuple(word(item, (*path, index)) for index, item in enumerate(items(value, path)))


def flag(value: Any, path: Path) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise BadField(path, f"{quote_value(value)} is neither true nor false.")
    return value


def day(value: Any, path: Path) -> str:
    """Read a day, such as 2026-11-15."""
    try:
        if isinstance(value, str) and _DAY.fullmatch(value):
            return date.fromisoformat(value).isoformat()
    except ValueError:
        pass
    raise BadField(path, f"{quote_value(value)} is not a day; write it as 2026-11-15.")


def some_day(value: Any, path: Path) -> str:
    """Read a day, a month or a year."""
    words = str(value)
    for missing in ("", "-01", "-01-01"):
        if _DAY.fullmatch(words + missing):
            day(words + missing, path)
            return words
    raise BadField(path, f"{quote_value(value)} is not a date; write 2026-11-15, 2026-11 or 2026.")


def one_of(*known: str) -> Read:
    """Return a reader that accepts only these words."""

    def read(value: Any, path: Path) -> str:
        if value not in known:
            raise BadField(path, f"{quote_value(value)} can't stand here; write {' or '.join(known)}.")
        return str(value)

    return read


def plain_name(value: Any, path: Path) -> str:
    """Read a lower-case name, such as a scheduler's; whether a platform of this kind exists is checked elsewhere."""
    name = text(value, path)
    if not _NAME.fullmatch(name):
        raise BadField(path, f"{quote_value(name)} can't stand here; write a name in small letters, such as slurm.")
    return name


def number(value: Any, path: Path) -> float:
    """Read a number that isn't negative."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        raise BadField(path, f"{quote_value(value)} is not a number from 0 up.")
    return value


def _make_reader(parse: Callable[[Any], Any]) -> Read:
    def read(value: Any, path: Path) -> Any:
        try:
            return parse(value)
        except SubletError as error:
            raise BadField(path, error.sentences) from None

    return read


def _count(value: Any) -> int:
    return parse_count(value)


def _counts(value: Any) -> Range:
    return parse_counts(value)


def _memory(value: Any) -> int:
    return parse_memory(str(value))


def _duration(value: Any) -> timedelta:
    return parse_duration(str(value))


count, counts, memory, duration = (
    _make_reader(_count),
    _make_reader(_counts),
    _make_reader(_memory),
    _make_reader(_duration),
)
