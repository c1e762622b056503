"""Token scopes: words that limit what a token's holder may do, each including those before it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from sublet.kernel.errors import BadScope


class Scope(StrEnum):
    """One word of a token's scope."""

    READ = "read"  # view, and fetch results
    RUN = "run"  # also request, accept, cancel, and everything else about sessions and jobs
    MANAGE = "manage"  # also tokens, systems, and whatever the person may decide


LADDER = tuple(Scope)


def read_scope(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words as they are stored, in order; raise BadScope if one is unknown or empty.

    No words mean no limit, so an empty one is not taken for none.
    """
    wanted = {part for word in words for part in word.replace(",", " ").split() or [""]}
    if unknown := sorted(wanted - set(LADDER)):
        raise BadScope(scope=unknown[0][:40] or "An empty text", words=", ".join(LADDER))
    return tuple(scope.value for scope in LADDER if scope in wanted)


def allows(held: Iterable[str], needed: str) -> bool:
    """Whether a scope includes a word; the empty scope includes all."""
    words = tuple(held)
    return not words or any(LADDER.index(Scope(word)) >= LADDER.index(Scope(needed)) for word in words)


def within(wanted: Iterable[str], held: Iterable[str]) -> bool:
    """Whether one scope gives no more than another."""
    words = tuple(wanted) or (Scope.MANAGE.value,)
    return all(allows(held, word) for word in words)
