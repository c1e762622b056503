"""Amounts in a request's document: ranges with a minimum and a maximum.

An amount that nobody could have is still valid, however it is written; it is answered with NO.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sublet.booking.documents.reading import Reading
from sublet.booking.documents.shapes import Document
from sublet.booking.model.amounts import finite, gib, parse_count, parse_memory, quote_value
from sublet.booking.model.request import GIB, Range
from sublet.booking.model.shape import Amounts, sizes_of
from sublet.kernel.document_fields import at, decline, read_possible
from sublet.kernel.errors import BadAmount

_BOUNDS = frozenset({"min", "max"})
_EXPONENT = re.compile(r"\s*[-+]?[0-9]+(\.[0-9]+)?[eE][-+]?[0-9]+\s*")  # YAML reads such a number as text


def read_counts(document: Document, name: str, default: Range, reading: Reading) -> Range:
    """Read how many nodes, cores or GPUs are requested."""
    bounds = document.get(name)
    if not bounds:
        return default
    path = f"compute.{name}"
    reading.ignore_unknown(bounds, _BOUNDS, path)
    return reading.attempt(default, _read_counts, bounds, path, f"a number of {name}", default)


def read_sizes(bounds: Mapping[str, Any], path: str, default: Range, reading: Reading) -> Range:
    """Read how much memory or storage is requested; a bare number is in GiB."""
    reading.ignore_unknown(bounds, _BOUNDS, path)
    return reading.attempt(default, _read_sizes, bounds, path, default)


def whole_gib(sizes: Range) -> Range:
    """Round a range of sizes to whole GiB, at least one and no less than requested, as plain kinds count them."""
    least = max(-(-sizes.min // GIB), 1) * GIB
    return Range(least, max(sizes.max // GIB * GIB, least))


def read_bytes(value: Any, path: str) -> int:
    """Read a file's size; a bare number is in bytes, as in the SKAO's documents."""
    number = _as_number(value)
    return (at if number is None else read_possible)(path, _bytes, value if number is None else number)


def _read_counts(bounds: Mapping[str, Any], path: str, what: str, default: Range) -> Range:
    if "max" not in bounds:
        return default
    high = _count(bounds["max"], f"{path}.max", what, default.min)
    low = _count(bounds["min"], f"{path}.min", what, default.min) if "min" in bounds else min(default.max, high)
    return _order(low, high, path)


def _count(value: Any, path: str, what: str, least: int) -> int:
    number = _as_number(value)
    is_whole = number is not None and number == int(number)
    return (read_possible if is_whole else at)(path, parse_count, number if is_whole else value, what, least)


def _read_sizes(bounds: Mapping[str, Any], path: str, default: Range) -> Range:
    if "max" not in bounds:
        return default
    high = _size_at(f"{path}.max", bounds["max"])
    low = _size_at(f"{path}.min", bounds["min"]) if "min" in bounds else min(default.min, high)
    return _order(low, high, path)


def _size_at(path: str, value: Any) -> int:
    number = _as_number(value)
    return at(path, _size, value) if number is None else read_possible(path, gib, number)


def _size(value: Any) -> int:
    if not isinstance(value, str):
        raise BadAmount(
            text=quote_value(value), what="an amount of memory", example="a number of GiB, or text like 512MiB"
        )
    return parse_memory(value)


def _bytes(value: Any) -> int:
    if isinstance(value, float):
        value = int(value)
    return parse_memory(value if isinstance(value, str) else f"{value}B")


def _as_number(value: Any) -> float | None:
    if isinstance(value, str):
        return finite(value) if _EXPONENT.fullmatch(value) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _order(low: int, high: int, path: str) -> Range:
    if low > high:
        decline(path, f"its min {low} is more than its max {high}", "Write the smaller one as min.")
    return Range(low, high)


def write_amounts(amounts: Amounts) -> Document:
    """Write the number of nodes and the amounts of each as a document that asks for exactly these."""
    sizes = {"nodes": amounts.nodes, **sizes_of(amounts.shape)}
    exact = {name: f"{sizes[name]}B" for name in ("memory", "disk") if sizes[name] or name == "memory"}
    texts = {name: size for name, size in sizes.items() if size} | exact
    return {name: {"min": size, "max": size} for name, size in texts.items()}
