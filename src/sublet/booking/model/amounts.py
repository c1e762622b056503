"""Cores, memory and durations: parsing what people and schedulers write, and printing it."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache

from sublet.booking.model.request import GIB, Range
from sublet.kernel.errors import BadAmount
from sublet.kernel.texts import describe_duration

KIB, MIB, TIB, PIB, EIB = 1 << 10, 1 << 20, 1 << 40, 1 << 50, 1 << 60
MOST_COUNT = 10_000_000
MOST_MEMORY = EIB
MOST_TIME = timedelta(days=400)
LARGEST = sys.float_info.max

# A bare letter is binary, as in Slurm; `KiB` is binary by the standard; `kB` is decimal.
_UNITS = {"b": 1}
for _power, _letter in enumerate("kmgtp", start=1):
    _UNITS |= {_letter: 1024**_power, f"{_letter}ib": 1024**_power, f"{_letter}b": 1000**_power}

_MEMORY = re.compile(r"([0-9]{1,20})(?:\.([0-9]{1,12}))?\s*([A-Za-z]{0,3})")
_PRINTED = (("PiB", PIB), ("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB))

_SECONDS = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}
_NUMBER = r"([0-9]{1,12}(?:\.[0-9]{1,9})?)"
_ISO = re.compile(
    rf"P(?:{_NUMBER}W)?(?:{_NUMBER}D)?(?:T(?=[0-9])(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:{_NUMBER}S)?)?", re.IGNORECASE
)
_WORDS = re.compile(
    rf"{_NUMBER}\s*(w|weeks?|d|days?|h|hrs?|hours?|m|mins?|minutes?|s|secs?|seconds?)(?![a-z])\s*", re.IGNORECASE
)
_SLURM = re.compile(r"(?:([0-9]{1,6})-([0-9]{1,2})(?::([0-9]{2}))?(?::([0-9]{2}))?|([0-9]{1,5}):([0-9]{2}):([0-9]{2}))")
_NO_LENGTH = re.compile(r"P[^T]*[0-9](?:Y|M)", re.IGNORECASE)

_A_TIME = "a length of time"
_A_MEMORY = "an amount of memory"


def quote_value(value: object) -> str:
    """Return a value as an error quotes it: short, and on one line."""
    if isinstance(value, int) and value.bit_length() > 1000:
        return "so large a number"  # Python itself refuses to print the largest
    text = value if isinstance(value, str) and value.isprintable() and value else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def finite(text: str) -> float:
    """Parse a number, clipped to the largest float; raise ValueError if the text isn't a finite number."""
    number = float(text)
    if text.strip().lstrip("+-")[:1].isalpha():  # inf and nan
        raise ValueError(text)
    return max(-LARGEST, min(number, LARGEST))


def parse_memory(text: str) -> int:
    """Parse `64GiB`, `512M` or `1.5TB` as bytes."""
    match = _MEMORY.fullmatch(text.strip())
    unit = _UNITS.get(match[3].lower()) if match else None
    if match is None or unit is None:
        bare = match is not None and not match[3] and int(match[1]) > 0
        example = f"{text.strip()}GiB" if bare else "64GiB, 512MiB or 1.5TiB"
        raise BadAmount(text=quote_value(text), what=_A_MEMORY, example=example)
    fraction = match[2] or ""
    size: int = -(-int(match[1] + fraction) * unit // 10 ** len(fraction))
    if size > MOST_MEMORY:
        raise BadAmount(
            text=quote_value(text), what=f"{_A_MEMORY} that any machine has", example="an amount up to 1024PiB"
        )
    return size


def gib(number: float) -> int:
    """Return the bytes in a number of GiB, the unit of IVOA's documents."""
    if isinstance(number, bool) or not 0 <= number <= MOST_MEMORY // GIB:
        raise BadAmount(text=quote_value(number), what="a number of GiB", example="a number from 0 to 1073741824")
    return math.ceil(number * GIB)


def memory_text(size: int) -> str:
    """Format bytes as `64GiB`, `1.5TiB` or `1000B`: exact, so that `parse_memory` reads the same back."""
    for name, unit in _PRINTED:
        if size >= unit and size * 100 % unit == 0:
            whole, hundredths = divmod(size * 100 // unit, 100)
            return f"{whole}.{hundredths:02}".rstrip("0").rstrip(".") + name
    return f"{size}B"


@lru_cache(maxsize=1024)
def parse_duration(text: str, at_most: timedelta = MOST_TIME) -> timedelta:
    """Parse a duration such as `1h30m`, `PT1H30M`, `P8D` or Slurm's `1-02:00:00`."""
    words = text.strip()
    seconds = _iso_seconds(words) if words[:1] in ("P", "p") else _plain_seconds(words)
    if seconds is None:
        raise BadAmount(text=quote_value(text), what=_what(words), example=_example(words))
    if seconds > at_most.total_seconds():
        what = f"{_A_TIME} up to {describe_duration(at_most)}"
        raise BadAmount(text=quote_value(text), what=what, example=f"{duration_text(at_most)} or less")
    return timedelta(seconds=seconds)


def _iso_seconds(text: str) -> float | None:
    match = _ISO.fullmatch(text)
    return _total(zip("wdhms", match.groups(), strict=True)) if match and len(text) > 1 else None


def _plain_seconds(text: str) -> float | None:
    if match := _SLURM.fullmatch(text):
        days, *clock = (int(part or 0) for part in match.groups())
        hours, minutes, seconds = clock[:3] if match[1] else clock[3:]
        tidy = minutes < 60 and seconds < 60 and (not match[1] or hours < 24)
        return days * 86_400 + hours * 3600 + minutes * 60 + seconds if tidy else None
    parts, at = [], 0
    while match := _WORDS.match(text, at):
        parts.append((match[2][0].lower(), match[1]))
        at = match.end()
    units = [unit for unit, _ in parts]
    in_order = units == sorted(set(units), key="wdhms".index)
    return _total(parts) if parts and at == len(text) and in_order else None


def _total(parts: Iterable[tuple[str, str | None]]) -> float | None:
    given = [_SECONDS[unit] * (float(number) if "." in number else int(number)) for unit, number in parts if number]
    return sum(given) if given else None


def _what(text: str) -> str:
    if text.startswith("-"):
        return f"{_A_TIME} that can be booked: it is negative"
    if _NO_LENGTH.match(text):
        return f"{_A_TIME} that is always the same: months and years differ"
    return _A_TIME


def _example(text: str) -> str:
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text):
        return f"{text}s for seconds, {text}m for minutes, {text}h for hours"
    if re.fullmatch(r"[0-9]+:[0-9]+", text):
        return f"{text}:00 for hours and minutes, or 1h30m"
    if match := re.fullmatch(r"P([0-9]+)([HS])", text, re.IGNORECASE):
        return f"PT{match[1]}{match[2].upper()} or {match[1]}{match[2].lower()}"
    if _NO_LENGTH.match(text):
        return "days: P30D"
    return "90m, 1h30m, PT1H30M or 1-02:00:00"


def duration_text(length: timedelta) -> str:
    """Format a duration as `1h30m`, `8d` or `0s`: exact, so that `parse_duration` reads the same back."""
    days, seconds = length.days, length.seconds
    hours, seconds = divmod(seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    parts = [f"{n}{unit}" for n, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if n]
    if seconds or length.microseconds or not parts:
        parts.append(f"{_with_fraction(seconds, length.microseconds)}s")
    return "".join(parts)


def duration_iso(length: timedelta) -> str:
    """Format a duration in ISO 8601, as `PT1H30M`, `P8D` or `PT0S`."""
    days, seconds = length.days, length.seconds
    hours, seconds = divmod(seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    clock = [f"{n}{unit}" for n, unit in ((hours, "H"), (minutes, "M")) if n]
    if seconds or length.microseconds or not (days or clock):
        clock.append(f"{_with_fraction(seconds, length.microseconds)}S")
    return "P" + (f"{days}D" if days else "") + (f"T{''.join(clock)}" if clock else "")


def _with_fraction(seconds: int, microseconds: int) -> str:
    return f"{seconds}.{microseconds:06}".rstrip("0") if microseconds else str(seconds)


def parse_count(value: object, what: str = "a count", least: int = 1) -> int:
    """Parse a whole number of things, from a number or its text."""
    digits = value.strip() if isinstance(value, str) else ""  # int() itself strips less than strip()
    count = int(digits) if re.fullmatch(r"[0-9]{1,12}", digits) else value
    if isinstance(count, float) and count.is_integer():
        count = int(count)
    if not isinstance(count, int) or isinstance(count, bool) or not least <= count <= MOST_COUNT:
        raise BadAmount(text=quote_value(value), what=what, example=f"a whole number from {least} to {MOST_COUNT}")
    return count


def parse_counts(value: object, what: str = "a count", least: int = 1) -> Range:
    """Parse a count such as `4`, or a range such as `2-8`."""
    if isinstance(value, str) and (match := re.fullmatch(r"\s*([0-9]{1,12})\s*-\s*([0-9]{1,12})\s*", value)):
        return _order(parse_count(match[1], what, least), parse_count(match[2], what, least), value)
    count = parse_count(value, what, least)
    return Range(count, count)


def parse_memories(text: str) -> Range:
    """Parse an amount of memory such as `4GiB`, or a range such as `4GiB-8GiB`."""
    low, dash, high = text.strip().partition("-")
    if dash and not low:
        raise BadAmount(text=quote_value(text), what=f"{_A_MEMORY}: it is negative", example="4GiB, or from 4GiB-8GiB")
    size = parse_memory(low)
    return _order(size, parse_memory(high), text) if dash else Range(size, size)


def _order(low: int, high: int, text: str) -> Range:
    if low > high:
        raise BadAmount(text=quote_value(text), what="a range", example="the smaller first")
    return Range(low, high)
