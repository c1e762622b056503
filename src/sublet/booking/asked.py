"""A request on its way to offers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sublet.booking.model.giving_way import USUAL, Precedence
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Request


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it was received, read, and with the operator's rules applied."""

    request: Request
    document: str
    content_type: str
    reasons: tuple[Reason, ...] = ()
    notes: tuple[str, ...] = ()
    remarks: tuple[Reason, ...] = ()  # what was ignored in it
    unresolved: bool = False  # it names an app that can't be run so; the reasons say why
    precedence: Precedence = USUAL
    booked_from: datetime | None = None  # what it waits for is sure to have ended then, as far as that is planned


class DirectKey(str):
    """A key under which the best offer is accepted at once: it is kept apart from those of requests alone."""

    __slots__ = ("own",)
    own: str  # as the asker sent it

    def __new__(cls, own: str) -> DirectKey:
        """As it is kept."""
        kept = super().__new__(cls, f"direct {own}")
        kept.own = own
        return kept
