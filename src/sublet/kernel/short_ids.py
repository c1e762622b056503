"""Short ids: a unique prefix of at least three characters names a session, an offer or another object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sublet.kernel.errors import Ambiguous, IdTooShort

T = TypeVar("T")
SHORTEST = 3
MOST_SHOWN = 5
_LETTERS = frozenset("0123456789abcdef-")


def require_length(name: str, noun: str) -> None:
    """Raise IdTooShort if a prefix of an id is too short."""
    if 0 < len(name) < SHORTEST and set(name.lower()) <= _LETTERS:
        raise IdTooShort(name=name, noun=noun, least=SHORTEST)


def pick_one(name: str, noun: str, matches: Sequence[T], describe: Callable[[T], str]) -> T | None:
    """Return the only object whose id has this prefix, or None; raise Ambiguous, listing them, if there are several.

    An empty name begins every id, and stands for none.
    """
    if not name:
        return None
    if len(matches) > 1:
        require_length(name, noun)
    return pick_named(name, noun, matches, describe)


def pick_named(name: str, noun: str, candidates: Sequence[T], describe: Callable[[T], str], hint: str = "") -> T | None:
    """Return the only object of this name, or None; raise Ambiguous, listing them, if there are several."""
    if len(candidates) <= 1:
        return candidates[0] if candidates else None
    more = f"; and {len(candidates) - MOST_SHOWN} more" if len(candidates) > MOST_SHOWN else ""
    matches = "; ".join(describe(candidate) for candidate in candidates[:MOST_SHOWN]) + more
    raise Ambiguous(name=name, nouns=f"{noun}s", matches=matches, hint=hint)
