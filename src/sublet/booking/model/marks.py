"""Marks: what is so of a session beside its phase, for programs to decide by. What people read is made from them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from sublet.kernel.errors import AccountRefused, LoginNeeded, PlatformUnreachable, SubletError


class Mark(StrEnum):
    """Something that is so of a session for now."""

    PAUSED = "paused"  # someone paused it, as far as its platform has told
    WARNED = "warned"  # it was told that its time is over soon
    UNUSED = "unused"  # nobody has it open, and it ends soon for that
    LOST = "lost"  # its platform has no record of it
    LOGIN_NEEDED = "login-needed"  # it waits for its owner to sign in to its platform
    UNREACHABLE = "unreachable"  # its platform gives no answer, or refuses the service's own account
    HELD_BACK = "held-back"  # its platform is being drained
    SENDING = "sending"  # its results are on their way to where they were asked to go
    UNSENT = "unsent"  # some of them could not be sent, and are kept where it ran


Marks = frozenset[Mark]
NONE: Marks = frozenset()
PAUSED: Marks = frozenset({Mark.PAUSED})
TROUBLE: Marks = frozenset({Mark.LOGIN_NEEDED, Mark.UNREACHABLE})


def set_condition(words: str = "", marks: Marks = NONE) -> dict[str, Any]:
    """The changes of a session that say how it is: in words for people, by marks for programs."""
    return {"condition": words, "marks": marks}


def mark_trouble(marks: Marks, error: Exception) -> Marks:
    """The marks of a session of which nothing was heard because of an error; what was known of it still counts."""
    return (marks - TROUBLE) | _trouble_of(error)


def describe_trouble(error: SubletError) -> str:
    """The same in words: what is wrong, and what to do."""
    return error.sentences


def _trouble_of(error: Exception) -> Marks:
    if isinstance(error, AccountRefused | PlatformUnreachable):
        return frozenset({Mark.UNREACHABLE})
    return frozenset({Mark.LOGIN_NEEDED}) if isinstance(error, LoginNeeded) else NONE


def write_marks(marks: Iterable[Mark]) -> str:
    """Marks as they are stored."""
    return " ".join(sorted(marks))


def read_marks(text: str) -> Marks:
    """Marks out of what is stored."""
    return frozenset(Mark(word) for word in text.split()) if text else NONE
