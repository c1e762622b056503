"""A request on its way to offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sublet.booking.model.estimate import Sample
from sublet.booking.model.giving_way import USUAL, Precedence
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Request
from sublet.booking.model.run_time import UNKNOWN, RunHistory

LEASED = Reason(
    "urn:not-supported",
    "executable.kind",
    "A pilot is started by an annex alone.",
    wanted="pilot",
    nearest="sublet annex create NAME",
)
PINNED = Reason(
    "urn:invalid-value",
    "executable.pinned",
    "Which code an app runs is not for who asks to say.",
    nearest="its name, and a version that was approved",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it was received, read, and with the operator's rules applied."""

    request: Request
    document: str
    content_type: str
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    remarks: tuple[Reason, ...] = ()  # what was ignored in it
    hints: tuple[Reason, ...] = ()  # what earlier runs say of it
    history: RunHistory = UNKNOWN  # those runs
    starts: Mapping[str, Sequence[Sample]] = field(default_factory=dict)  # of each shared platform, its record
    unresolved: bool = False  # it names an app that can't be run so; the reasons say why
    precedence: Precedence = USUAL
    booked_from: datetime | None = None  # what it waits for is sure to have ended then, as far as that is planned
    passable: Mapping[str, Any] | None = None  # the document that other brokers may be sent; None: none may be
    via: tuple[str, ...] = ()  # the ids of the brokers that it has come through
    request_id: str = ""  # which the first of those brokers gave it: the same by whichever way it comes
    within: timedelta | None = None  # how long the asker waits for the answer, if they said so


class DirectKey(str):
    """A key under which the best offer is accepted at once: it is kept apart from those of requests alone."""

    __slots__ = ("own",)
    own: str  # as the asker sent it

    def __new__(cls, own: str) -> DirectKey:
        """As it is kept."""
        kept = super().__new__(cls, f"direct {own}")
        kept.own = own
        return kept
