"""Quantities as Kubernetes writes them: 500m, 16Gi, 2, 1e3."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

SUFFIXES = {
    "": Decimal(1),
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{letter: Decimal(1000) ** power for power, letter in enumerate(("k", "M", "G", "T", "P", "E"), 1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}


def parse_quantity(text: str | float) -> Decimal:
    """Read a quantity as a number; 0 if it isn't one."""
    written = str(text).strip()
    try:
        return Decimal(written)  # including 1e3, as Kubernetes may write it
    except InvalidOperation:
        number = written.rstrip("numkKMGTPEi")
        suffix = written[len(number) :]
    try:
        return Decimal(number) * SUFFIXES[suffix]
    except (InvalidOperation, KeyError):
        return Decimal(0)


def write_quantity(number: Decimal) -> str:
    """Write a number as a quantity: in thousandths, if it isn't whole."""
    return str(int(number)) if number == int(number) else f"{math.ceil(number * 1000)}m"


def amount_of(amounts: Mapping[str, str], *names: str) -> int | None:
    """Return the first of these amounts that is present, in whole units; None if none is."""
    for name in names:
        if name in amounts:
            return int(parse_quantity(amounts[name]))
    return None
