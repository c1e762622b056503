"""Unaccepted offers give way to a later request of the same person, where that needs their room.

Everything here searches a calendar and leaves it as it was; what comes of it is booked by the caller.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.booking.model.calendar import Calendar
from sublet.booking.model.holds import hold_of
from sublet.booking.model.offer import Answer, Offer, Take
from sublet.booking.model.request import Request

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


def _covers(offer: Offer, other: Offer) -> bool:
    """Whether an offer has no less than another and starts no later."""
    return offer.start <= other.start + SLACK and all(a >= b for a, b in zip(_size(offer), _size(other), strict=True))


def _size(offer: Offer) -> tuple[int, ...]:
    return len(offer.nodes), offer.shape.cores, offer.shape.memory, offer.shape.gpus, offer.shape.disk


def is_unbeatable(answer: Answer, request: Request, now: datetime) -> bool:
    """Whether more room could not improve an answer: all that was asked for, as early as it was asked for."""
    compute = request.compute
    most = (compute.nodes.max, compute.cores.max, compute.memory.max, compute.gpus.max, compute.disk.max)
    return any(
        _is_at_once(offer, request, now) and all(a >= b for a, b in zip(_size(offer), most, strict=True))
        for offer in answer.offers
    )


def starts_at_once(answer: Answer, request: Request, now: datetime) -> bool:
    """Whether an offer starts as early as it was asked for, or as soon as it can be ready."""
    return any(_is_at_once(offer, request, now) for offer in answer.offers)


def _is_at_once(offer: Offer, request: Request, now: datetime) -> bool:
    if request.recurring:
        return False
    earliest = max(now, request.not_before) if request.not_before else now
    asked = min((window.start for window in request.windows), default=now)
    return offer.start <= max(earliest + offer.prepare + SLACK, asked)


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
