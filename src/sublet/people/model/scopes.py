"""What the holder of a token may do, of all that its person may: words, each of which includes those before it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from sublet.kernel.errors import BadScope


class Scope(StrEnum):
    """One word of a token's scope."""

    READ = "read"  # look, and fetch results
    RUN = "run"  # also ask, accept, cancel, and all else that is done with sessions and jobs
    MANAGE = "manage"  # also tokens, systems, and whatever the person decides on


LADDER = tuple(Scope)


def read_scope(words: Iterable[str]) -> tuple[str, ...]:
    """The words as they are kept, in their order; BadScope if there is no such word."""
    wanted = {part for word in words for part in word.replace(",", " ").split()}
    if unknown := sorted(wanted - set(LADDER)):
        raise BadScope(scope=unknown[0][:40], words=", ".join(LADDER))
    return tuple(scope.value for scope in LADDER if scope in wanted)


def allows(held: Iterable[str], needed: str) -> bool:
    """Whether a scope includes a word; the empty scope includes all."""
    words = tuple(held)
    return not words or any(LADDER.index(Scope(word)) >= LADDER.index(Scope(needed)) for word in words)


def within(wanted: Iterable[str], held: Iterable[str]) -> bool:
    """Whether one scope gives no more than another."""
    words = tuple(wanted) or (Scope.MANAGE.value,)
    return all(allows(held, word) for word in words)
