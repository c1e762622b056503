"""Values as words. Every command needs these, so that nothing is imported here that is slow to load."""

from __future__ import annotations

from datetime import timedelta

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
