"""Marks: a session's state beside its phase, by which programs decide; text for people is made from them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from sublet.kernel.errors import AccountRefused, LoginNeeded, PlatformUnreachable, SubletError


class Mark(StrEnum):
    """Something that is true of a session for now."""

    PAUSED = "paused"  # someone paused it, according to its platform's last report
    WARNED = "warned"  # it was warned that its time is over soon
    UNUSED = "unused"  # nobody has it open, so it ends soon
    LOST = "lost"  # its platform has no record of it
    GIVEN_UP = "given-up"  # it is taken out of its queue, where it was lost or waited too long
    LOGIN_NEEDED = "login-needed"  # it waits for its owner to sign in to its platform
    UNREACHABLE = "unreachable"  # its platform gives no answer, or refuses the service's own account
    HELD_BACK = "held-back"  # its platform is being drained
    SENDING = "sending"  # its results are being sent to the requested address
    UNSENT = "unsent"  # some of its results could not be sent, and are kept where it ran


Marks = frozenset[Mark]
NONE: Marks = frozenset()
PAUSED: Marks = frozenset({Mark.PAUSED})
TROUBLE: Marks = frozenset({Mark.LOGIN_NEEDED, Mark.UNREACHABLE})


def set_condition(words: str = "", marks: Marks = NONE) -> dict[str, Any]:
    """Return the changes that set a session's condition: text for people, marks for programs."""
    return {"condition": words, "marks": marks}


def mark_trouble(marks: Marks, error: Exception) -> Marks:
    """Return a session's marks after an error prevented a report on it; its other marks are kept."""
    return (marks - TROUBLE) | _trouble_of(error)


def describe_trouble(error: SubletError) -> str:
    """Return the error in words: what is wrong, and what to do."""
    return error.sentences


def _trouble_of(error: Exception) -> Marks:
    if isinstance(error, AccountRefused | PlatformUnreachable):
        return frozenset({Mark.UNREACHABLE})
    return frozenset({Mark.LOGIN_NEEDED}) if isinstance(error, LoginNeeded) else NONE


def write_marks(marks: Iterable[Mark]) -> str:
    """Return marks as stored text."""
    return " ".join(sorted(marks))


def read_marks(text: str) -> Marks:
    """Read marks from stored text."""
    return frozenset(Mark(word) for word in text.split()) if text else NONE
