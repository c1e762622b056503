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
    "Only an annex can start a pilot.",
    wanted="pilot",
    nearest="sublet annex create NAME",
)
PINNED = Reason(
    "urn:invalid-value",
    "executable.pinned",
    "A request can't choose the code that an app runs.",
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
    remarks: tuple[Reason, ...] = ()  # fields of the request that were ignored
    hints: tuple[Reason, ...] = ()  # advice from earlier runs
    history: RunHistory = UNKNOWN  # those earlier runs
    starts: Mapping[str, Sequence[Sample]] = field(default_factory=dict)  # shared platform → its start history
    unresolved: bool = False  # a name in it, such as an app's, was refused; the reasons say why
    precedence: Precedence = USUAL
    booked_from: datetime | None = None  # no booked start before this: the sessions it depends on have ended
    passable: Mapping[str, Any] | None = None  # the document to send to other brokers; None: don't pass it on
    via: tuple[str, ...] = ()  # ids of the brokers that passed it on
    request_id: str = ""  # given by the first of those brokers, so that copies by other routes are recognised
    within: timedelta | None = None  # how long the asker waits for the answer, if stated


class DirectKey(str):
    """An idempotency key for asking and accepting in one call, distinct from the same key of a plain request."""

    __slots__ = ("own",)
    own: str  # the key as the asker sent it

    def __new__(cls, own: str) -> DirectKey:
        """Return the key with the prefix under which it is stored."""
        kept = super().__new__(cls, f"direct {own}")
        kept.own = own
        return kept
