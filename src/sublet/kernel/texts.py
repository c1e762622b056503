"""Values in words. Every command imports this module, so it imports nothing that is slow to load."""

from __future__ import annotations

from datetime import timedelta

STEPS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def count_text(number: int, noun: str) -> str:
    """Return a number with its noun: `1 offer`, `3 offers`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def describe_duration(length: timedelta, units: int | None = None) -> str:
    """Return a duration for people, exactly or to so many units: `10 min`, `1 h 30 min`, `0.5 s`."""
    seconds = abs(length.total_seconds())
    if units is None and seconds < 60:
        return f"{seconds:g} s"
    rest, parts = round(seconds), list[tuple[int, str]]()
    for size, unit in STEPS:
        count, rest = divmod(rest, size)
        if count or parts:
            parts.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in parts[:units] if count) or "0 s"


def describe_length(length: timedelta) -> str:
    """Return an estimated or measured length of time in two units, from ten hours on in one; or `under 1 s`."""
    if length < timedelta(seconds=1):
        return "under 1 s"
    return describe_duration(length, units=2 if length < timedelta(hours=10) else 1)
