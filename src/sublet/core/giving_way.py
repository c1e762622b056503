"""Unaccepted offers give way to a later request of the same person, where that needs their room.

Everything here searches a calendar and leaves it as it was; what comes of it is booked by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.core.calendar import Calendar
from sublet.core.holds import hold_of
from sublet.core.offer import Answer, Offer, Take
from sublet.core.request import Request

Look = Callable[[], Answer]
NEW = "new"  # the key of what is tried out
SLACK = timedelta(seconds=2)  # a start this soon after it could have been is as good


@dataclass(frozen=True, slots=True)
class Precedence:
    """How the offers of a request stand to the asker's earlier and later ones."""

    keep_offers: bool = False  # earlier ones are not to give way to it
    firm: bool = False  # its own don't give way to later requests: one of them is about to be accepted
    instead_of: str = ""  # the earlier offer set that is given back if there are offers now


USUAL = Precedence()


def improves(answer: Answer, known: Sequence[Offer]) -> bool:
    """Whether an answer has an offer that starts before, or has more than, each of those that are known."""
    return any(not any(_covers(other, offer) for other in known) for offer in answer.offers)


def _covers(one: Offer, other: Offer) -> bool:
    """Whether an offer has no less than another and starts no later."""
    mine = (len(one.nodes), one.shape.cores, one.shape.memory, one.shape.gpus)
    theirs = (len(other.nodes), other.shape.cores, other.shape.memory, other.shape.gpus)
    return one.start <= other.start + SLACK and all(a >= b for a, b in zip(mine, theirs, strict=True))


def is_unbeatable(answer: Answer, request: Request, now: datetime) -> bool:
    """Whether more room could not improve an answer: exactly what was asked for, as soon as it can be ready."""
    compute = request.compute
    ranges = (compute.nodes, compute.cores, compute.memory, compute.gpus)
    if request.windows or request.recurring or any(one.min != one.max for one in ranges):
        return False
    return starts_at_once(answer, request, now)


def starts_at_once(answer: Answer, request: Request, now: datetime) -> bool:
    """Whether the first offer starts as early as it was asked for, or as soon as it can be ready."""
    if not answer.offers or request.recurring:
        return False
    first = min(answer.offers, key=lambda offer: offer.start)
    earliest = [now, *([request.not_before] if request.not_before else [])]
    asked = min((window.start for window in request.windows), default=now)
    return first.start <= max(max(earliest) + first.prepare + SLACK, asked)


def find_displaced(calendar: Calendar, older: Sequence[str], hold: Sequence[Take]) -> list[str]:
    """The older holds that have no room beside a new one; the first of `older` are kept rather than the last."""
    takes = {key: calendar.takes(key) for key in older}
    kept, displaced = [NEW], []
    with calendar.set_aside(older):
        calendar.put(NEW, hold)
        try:
            for key, held in takes.items():
                if calendar.fits(held):
                    calendar.put(key, held)
                    kept.append(key)
                else:
                    displaced.append(key)
        finally:
            for key in kept:
                calendar.release(key)
    return displaced


def find_fitting(calendar: Calendar, offers: Sequence[Offer]) -> list[Offer]:
    """The offers that could be held now; as one of them at most is taken, they can be held together too."""
    return [offer for offer in offers if calendar.fits(hold_of([offer]))]


def first_start(answer: Answer) -> datetime | None:
    """When the earliest of the offers starts; None if there is none."""
    return min((offer.start for offer in answer.offers), default=None)


def cores_at(calendar: Calendar, keys: Sequence[str], time: datetime) -> int:
    """How many cores are booked under these keys at a moment."""
    takes = (take for key in keys for take in calendar.takes(key))
    return sum(take.cores for take in takes if not take.pool and take.start <= time < take.end)
