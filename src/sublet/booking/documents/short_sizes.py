"""Sizes of memory, disk and storage, read from the short form and written in the full one."""

from __future__ import annotations

from typing import Any

from sublet.booking.model.amounts import MIB, parse_memories, quote_value
from sublet.booking.model.request import GIB, Range
from sublet.kernel.errors import BadAmount


def read_sizes(value: Any) -> Range:
    """Parse a size with its unit, or a range of sizes."""
    if not isinstance(value, str):
        raise BadAmount(text=quote_value(value), what="an amount of memory", example=_with_unit(value))
    return parse_memories(value)


def _with_unit(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        return "8GiB"
    return f"{value}GiB" if value < MIB else f"{value / MIB:g}MiB, if those are bytes"


def write_amount(size: int) -> int | str:
    """Write a size as a number of GiB, as IVOA counts, or with its unit if it isn't whole."""
    if size % GIB == 0:
        return size // GIB
    return f"{size // MIB}MiB" if size % MIB == 0 else f"{size}B"
