"""Unaccepted offers give way to a later request of the same person that needs their room.

The functions here search a calendar and leave it unchanged; the caller books the result.
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
NEW = "new"  # the key of a tentative booking
SLACK = timedelta(seconds=2)  # a start that is this much later counts as equal


@dataclass(frozen=True, slots=True)
class Precedence:
    """How the offers of a request relate to the asker's earlier and later offers."""

    keep_offers: bool = False  # earlier offers must not give way to it
    firm: bool = False  # its offers don't give way to later requests: one is about to be accepted
    instead_of: str = ""  # the earlier offer set to give back if there are offers now


USUAL = Precedence()


def improves(answer: Answer, known: Sequence[Offer]) -> bool:
    """Whether an answer has an offer that is earlier or larger than each known one."""
    return any(not any(_covers(other, offer) for other in known) for offer in answer.offers)


def _covers(offer: Offer, other: Offer) -> bool:
    """Whether an offer is at least as large as another and starts no later."""
    return offer.start <= other.start + SLACK and all(a >= b for a, b in zip(_size(offer), _size(other), strict=True))


def _size(offer: Offer) -> tuple[int, ...]:
    return len(offer.nodes), offer.shape.cores, offer.shape.memory, offer.shape.gpus, offer.shape.disk


def is_unbeatable(answer: Answer, request: Request, now: datetime) -> bool:
    """Whether more room could not improve an answer: it has the maximum amounts at the earliest requested time."""
    compute = request.compute
    most = (compute.nodes.max, compute.cores.max, compute.memory.max, compute.gpus.max, compute.disk.max)
    return any(
        _is_at_once(offer, request, now) and all(a >= b for a, b in zip(_size(offer), most, strict=True))
        for offer in answer.offers
    )


def starts_at_once(answer: Answer, request: Request, now: datetime) -> bool:
    """Whether an offer starts at the earliest requested time, or as soon as it can be ready."""
    return any(_is_at_once(offer, request, now) for offer in answer.offers)


def _is_at_once(offer: Offer, request: Request, now: datetime) -> bool:
    if request.recurring:
        return False
    earliest = max(now, request.not_before) if request.not_before else now
    asked = min((window.start for window in request.windows), default=now)
    return offer.start <= max(earliest + offer.prepare + SLACK, asked)


def find_displaced(calendar: Calendar, older: Sequence[str], hold: Sequence[Take]) -> list[str]:
    """Return the older holds that don't fit beside a new one; holds early in `older` are kept before later ones."""
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
    """Return the offers that could be held now; they can be held together, because at most one is accepted."""
    return [offer for offer in offers if calendar.fits(hold_of([offer]))]


def first_start(answer: Answer) -> datetime | None:
    """Return when the earliest of the offers starts, or None if there are none."""
    return min((offer.start for offer in answer.offers), default=None)


def cores_at(calendar: Calendar, keys: Sequence[str], time: datetime) -> int:
    """Return how many cores are booked under these keys at a moment."""
    takes = (take for key in keys for take in calendar.takes(key))
    return sum(take.cores for take in takes if not take.pool and take.start <= time < take.end)
