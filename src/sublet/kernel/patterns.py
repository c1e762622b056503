"""Bounds how long a regular expression can take, so that one from a stranger can't keep a service busy."""

from __future__ import annotations

import re
import warnings
from re import _constants as c  # type: ignore[attr-defined]  # Python shows its own reading of a pattern nowhere else
from re import _parser  # type: ignore[attr-defined]
from typing import Any

LONGEST = 200  # characters of a text that has to match a pattern
MOST_TRIES = 10_000_000
SIMPLE = frozenset({c.LITERAL, c.NOT_LITERAL, c.ANY, c.IN, c.AT, c.RANGE, c.CATEGORY})
REPEATS = frozenset({c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT})
FEW = 8  # repetitions of a part that can itself match in several ways
NEVER = MOST_TRIES + 1


def pattern_problem(pattern: str) -> str:
    """Return why a pattern can't be used, or an empty string if it can."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)  # about syntax whose meaning a later Python may change
            parsed = list(_parser.parse(pattern))
        ways = _ways(parsed)
    except (re.error, OverflowError, RecursionError, FutureWarning) as error:
        return f"it is not a regular expression: {error}"
    anchored = bool(parsed) and parsed[0] == (c.AT, c.AT_BEGINNING)
    if ways * (1 if anchored else LONGEST) > MOST_TRIES:
        return "it could take too long; begin it with ^, and repeat nothing that has repetitions or choices in it"
    return ""


def _ways(parts: Any) -> int:
    """Return an upper bound for the ways to match a sequence of parts against a text of the longest length."""
    number = 1
    for operation, argument in parts:
        number = min(number * _ways_of(operation, argument), NEVER)
    return number


def _ways_of(operation: Any, argument: Any) -> int:
    if operation in SIMPLE:
        return 1
    if operation in REPEATS:
        low, high, body = argument
        inner, high = _ways(body), min(int(high), LONGEST)
        if inner == 1:
            return max(high - int(low) + 1, 1)
        return min(inner**high * max(high, 1), NEVER) if high <= FEW else NEVER
    if operation is c.SUBPATTERN:
        return _ways(argument[-1])
    if operation is c.ATOMIC_GROUP:
        return _ways(argument)
    if operation is c.BRANCH:
        return min(sum(_ways(branch) for branch in argument[1]), NEVER)
    return NEVER  # lookaheads, lookbehinds and back references
