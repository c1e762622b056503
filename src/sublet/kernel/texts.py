"""Values as words, and words as names."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

STEPS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def count_text(number: int, noun: str) -> str:
    """`1 offer`, `3 offers`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def describe_duration(length: timedelta, units: int | None = None) -> str:
    """`10 min`, `1 h 30 min`, `0.5 s`: as a person reads it, exactly or to so many units from the largest on."""
    seconds = abs(length.total_seconds())
    if units is None and seconds < 60:
        return f"{seconds:g} s"
    rest, parts = round(seconds), list[tuple[int, str]]()
    for size, unit in STEPS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in parts[:units] if count) or "0 s"


def value_text(value: Any) -> str:
    """A text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def directory_name(name: str) -> str:
    """A resource's name as the name of its directory."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", name).lstrip(".")[:100] or "data"


def last_name(location: str) -> str:
    """What a location is called: the last part of its path."""
    plain = unquote(urlsplit(location).path if ":" in location else location).rstrip("/").rpartition("/")[2]
    return "".join(sign for sign in plain if sign.isprintable()).strip() if plain.strip(".") else ""
