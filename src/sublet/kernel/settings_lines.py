"""Finds the line of a setting in sublet.toml, for error messages."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches

from pydantic_core import ErrorDetails

NAME = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
KEY = rf"{NAME}(?:\s*\.\s*{NAME})*"
TABLE = re.compile(rf"\s*\[\s*({KEY})\s*\]")
ITEM = re.compile(rf"\s*\[\[\s*({KEY})\s*\]\]")
VALUE = re.compile(rf"\s*({KEY})\s*=")


def find_line(text: str, path: Sequence[str | int]) -> int:
    """Return the line of a setting, or of the table that it would be in; 0 if neither is in the text."""
    wanted = tuple(str(part) for part in path)
    best, depth = 0, 0
    for number, here in _list_keys(text):
        if len(here) > depth and here == wanted[: len(here)]:
            best, depth = number, len(here)
    return best


def at_line(line: int, why: str) -> str:
    """Prefix an error message with its line, if that is known."""
    return f"line {line}: {why}" if line else why


def at_setting(path: Sequence[str | int], why: str) -> str:
    """Prefix an error message with the setting's name."""
    return f"{'.'.join(map(str, path))}: {why}"


def describe_error(error: ErrorDetails, known: Sequence[str]) -> str:
    """Return a validation error in words; `known` are the names that the setting could have."""
    if error["type"] == "extra_forbidden":
        return f"there is no such setting{suggest(str(error['loc'][-1]), known)}"
    return error["msg"].removeprefix("Value error, ")  # pydantic's prefix for errors of our own validators


def suggest(name: str, known: Sequence[str]) -> str:
    """Return a question that suggests the closest known name; empty if none is close."""
    near = get_close_matches(name, known, 1)
    return f"; did you mean {near[0]}?" if near else ""


def _list_keys(text: str) -> list[tuple[int, tuple[str, ...]]]:
    table: tuple[str, ...] = ()
    items: Counter[tuple[str, ...]] = Counter()
    keys = []
    for number, line in enumerate(text.splitlines(), 1):
        if item := ITEM.match(line):
            name = _split(item[1])
            table = (*name, str(items[name]))
            items[name] += 1
            keys.append((number, table))
        elif header := TABLE.match(line):
            table = _split(header[1])
            keys.append((number, table))
        elif value := VALUE.match(line):
            keys.append((number, (*table, *_split(value[1]))))
    return keys


def _split(key: str) -> tuple[str, ...]:
    """Return the parts of a dotted TOML key."""
    parts, value = [], tomllib.loads(f"{key} = 0")
    while isinstance(value, dict):
        [(name, value)] = value.items()
        parts.append(name)
    return tuple(parts)
