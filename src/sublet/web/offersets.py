"""The answer to a request: offers on a calendar with the busy times, or the reasons why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from sublet.api.people import service_of
from sublet.core.offer import Reason, Take
from sublet.core.offers import hold_of, takes_of
from sublet.core.session import ACTIVE, OfferSet, Phase, Session
from sublet.errors import SubletError
from sublet.service.service import Service
from sublet.web.calendar import Mark, Picture, draw, frame, without
from sublet.web.drawing import clock_of, page
from sublet.web.form import field_of, values_of
from sublet.web.nearest import with_nearest
from sublet.web.reading import visitor
from sublet.web.words import Clock, resources


@dataclass(frozen=True, slots=True)
class Numbered:
    """An offer with the number that it has on the calendar and in the list."""

    number: int
    session: Session
    open: bool  # it can be accepted now


@dataclass(frozen=True, slots=True)
class Answerable:
    """A reason why not; `heed` is its number if the form can be filled in with its nearest YES."""

    reason: Reason
    field: str
    heed: int | None


async def look(request: Request) -> Response:
    """An offer set, as it is now."""
    who = visitor(request)
    service = service_of(request)
    clock = clock_of(request)
    found = await service.offerset(request.path_params["id"], who.person)
    held = found.expires > clock.now
    offers = [
        Numbered(number, session, held and session.phase is Phase.OFFERED)
        for number, session in enumerate(found.offers, start=1)
    ]
    return page(
        request,
        "offerset.html",
        who,
        offerset=found,
        offers=offers,
        held=held and any(offer.open for offer in offers),
        taken=next((offer for offer in offers if offer.session.phase not in NOT_TAKEN), None),
        pictures=await _pictures(service, offers, clock),
        reasons=_answerable(found),
        by_form=values_of(found.request) is not None,
    )


NOT_TAKEN = (Phase.OFFERED, Phase.REJECTED, Phase.EXPIRED)


def _answerable(offerset: OfferSet) -> list[Answerable]:
    values = values_of(offerset.request)
    return [
        Answerable(reason, field_of(reason.field), index if values and with_nearest(values, reason) else None)
        for index, reason in enumerate(offerset.reasons)
    ]


async def _pictures(service: Service, offers: Sequence[Numbered], clock: Clock) -> list[tuple[str, Picture]]:
    """One calendar for each platform that offers something, all over the same time."""
    if not offers:
        return []
    marks = {offer.number: _mark(offer, clock) for offer in offers}
    start, end = frame(list(marks.values()), clock.now)
    pictures: list[tuple[str, Picture]] = []
    for platform in dict.fromkeys(offer.session.offer.platform for offer in offers):
        here = [offer for offer in offers if offer.session.offer.platform == platform]
        try:
            busy = await service.busy(platform, start, end)
        except SubletError:
            continue  # a platform that went away is not a reason to hide the others
        takes = without([take for steps in busy.takes.values() for take in steps], _own(here))
        chosen = [marks[offer.number] for offer in here]
        pictures.append((platform, draw(busy.nodes, takes, chosen, start, end, now=clock.now, zone=clock.zone)))
    return pictures


def _mark(offer: Numbered, clock: Clock) -> Mark:
    session = offer.session
    start = session.start or session.offer.start
    end = session.until or start + session.offer.duration
    tone = "offer" if offer.open else "mine" if session.phase not in NOT_TAKEN else "past"
    title = f"Offer {offer.number}: {clock.span(start, end)}, {resources(session.offer)}"
    return Mark(str(offer.number), session.offer.nodes, start, end, title, tone)


def _own(offers: Sequence[Numbered]) -> list[Take]:
    """What the calendar has down for this very offer set."""
    booked = [offer.session for offer in offers if offer.session.offer.terms.kind == "booked"]
    own = list(hold_of([session.offer for session in booked if session.phase is Phase.OFFERED]))
    for session in booked:
        if session.phase in ACTIVE and session.start:
            own += takes_of(session.offer, session.start)
    return own
