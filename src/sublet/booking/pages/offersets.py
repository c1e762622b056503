"""The page of an offer set: offers on a calendar with the busy times, or the reasons for a NO."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.api.people import service_of
from sublet.booking.model.holds import hold_of, takes_of
from sublet.booking.model.offer import (
    HINT,
    Node,
    Predicted,
    Reason,
    Take,
    Terms,
    find_first_terms,
    list_route,
)
from sublet.booking.model.phases import ACTIVE, Phase
from sublet.booking.model.session import EndKind, OfferSet, Session, find_likely_end
from sublet.booking.pages.calendar import CalendarMark, Picture, draw, frame, without
from sublet.booking.pages.form import values_of
from sublet.booking.pages.nearest import heed_reasons
from sublet.kernel.errors import SubletError
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.web.drawing import clock_of, page
from sublet.web.reading import change_of, read_form, visitor
from sublet.web.words import Clock, resources

LANES = 3  # nodes of each platform that are drawn, or more if the offers need them
NOT_TAKEN = (Phase.OFFERED, Phase.REJECTED, Phase.EXPIRED)
CAPPED = "urn:capped-by-rule"  # no reason for a NO, but a change that the operator's rules made
HELD = "urn:held"  # beside offers, no reason for a NO, but why they can't start earlier


@dataclass(frozen=True, slots=True)
class Numbered:
    """An offer with its number on the calendar and in the list."""

    number: int
    session: Session
    open: bool  # whether it can be accepted now

    @property
    def first(self) -> Terms | None:
        """Return the terms of the broker that made the offer, here or elsewhere; None if it stated none."""
        return find_first_terms(self.session.offer.terms)

    @property
    def over(self) -> datetime | None:
        """Return when the session is likely to be over; None if too little is known of earlier runs."""
        return find_likely_end(self.session)

    @property
    def route(self) -> str:
        """Return the route to where the offer would run, through other brokers."""
        return "/".join(list_route(self.session.offer.platform, self.session.offer.terms))


@dataclass(frozen=True, slots=True)
class Against:
    """All reasons against a request on one platform; `field` is the form's field that the nearest YES would change."""

    platform: str
    reasons: tuple[Reason, ...]
    field: str


async def look(request: Request) -> Response:
    """Show an offer set as it is now."""
    who = await visitor(request)
    service = service_of(request)
    clock = clock_of(request)
    stored = await service.asking.offerset(request.path_params["id"], who.person)
    offers = [
        Numbered(number, session, session.expires > clock.now and session.phase is Phase.OFFERED)
        for number, session in enumerate(stored.offers, start=1)
    ]
    return page(
        request,
        "offerset.html",
        who,
        offerset=stored,
        first_expiry=min((offer.session.expires for offer in offers if offer.open), default=stored.expires),
        offers=offers,
        open=[offer for offer in offers if offer.open],
        held=[offer for offer in offers if offer.open and offer.session.offer.is_held],
        taken=next((offer for offer in offers if offer.session.phase not in NOT_TAKEN), None),
        pictures=await _pictures(service, who.person, offers, clock),
        reasons=_against(stored),
        notes=[reason.message for reason in stored.reasons if reason.kind in _notes(stored) and reason.kind != HINT],
        hints=[reason for reason in stored.reasons if reason.kind == HINT],
        newer=_newer(stored),
        rejected=bool(offers) and all(offer.session.phase is Phase.REJECTED for offer in offers),
        blocked=any(reason.kind == HELD and reason.nearest for reason in stored.reasons),
    )


async def change(request: Request) -> Response:
    """Reject these offers; or reject all of the visitor's open offers, and ask for the same again."""
    give_back = change_of(request, CHANGES)
    who, _ = await read_form(request)
    return RedirectResponse(await give_back(service_of(request), request.path_params["id"], who.person), 303)


async def _reject(service: Service, id: str, person: Person) -> str:
    await service.offers.reject_set(id, person)
    return f"/web/offersets/{id}"


async def _reject_all(service: Service, id: str, person: Person) -> str:
    earlier = await service.asking.offerset(id, person)
    await service.offers.reject_all(person)
    return f"/web/ask?from={earlier.id}"


CHANGES: dict[str, Callable[[Service, str, Person], Awaitable[str]]] = {"reject": _reject, "reject-all": _reject_all}


def _notes(offerset: OfferSet) -> tuple[str, ...]:
    """Return the kinds of reasons that are no objection."""
    return (CAPPED, HELD, HINT) if offerset.offers else (CAPPED,)


def _newer(offerset: OfferSet) -> str:
    """Return the later offer set that offers of this one gave way to, or an empty text."""
    ends = (session.end for session in offerset.offers if session.end)
    return next((end.detail for end in ends if end.kind is EndKind.GAVE_WAY), "")


def _against(offerset: OfferSet) -> list[Against]:
    values = values_of(offerset.request)
    by_platform: dict[str, list[Reason]] = {}
    for reason in offerset.reasons:
        if reason.kind not in _notes(offerset):
            by_platform.setdefault(reason.platform, []).append(reason)
    return [
        Against(platform, tuple(reasons), heed_reasons(values, reasons)[1] if values else "")
        for platform, reasons in by_platform.items()
    ]


async def _pictures(
    service: Service, person: Person, offers: Sequence[Numbered], clock: Clock
) -> list[tuple[str, Picture]]:
    """Draw a calendar for each platform with offers, all over the same time."""
    if not offers:
        return []
    marks = {offer.number: _mark(offer, clock) for offer in offers}
    start, end = frame(list(marks.values()), clock.now)
    pictures: list[tuple[str, Picture]] = []
    for platform in dict.fromkeys(offer.session.offer.platform for offer in offers):
        here = [offer for offer in offers if offer.session.offer.platform == platform]
        nodes, takes = await _list_taken(service, person, platform, start, end, _own(here))
        chosen = [marks[offer.number] for offer in here]
        pictures.append((platform, draw(nodes, takes, chosen, start, end, now=clock.now, zone=clock.zone, most=LANES)))
    return pictures


async def _list_taken(
    service: Service, person: Person, platform: str, start: datetime, end: datetime, own: Sequence[Take]
) -> tuple[Sequence[Node], Sequence[Take]]:
    """Return a platform's nodes and what others have taken of them; empty if its calendar isn't kept here."""
    try:
        state = await service.usable_platforms.platform(platform, person)
        if state.terms == "booked":
            busy = await service.usable_platforms.busy(platform, person, start, end)
            return busy.nodes, without([take for steps in busy.takes.values() for take in steps], own)
    except SubletError:
        pass  # the offers are shown even if the platform is gone, or closed to the visitor by now
    return (), ()


def _mark(offer: Numbered, clock: Clock) -> CalendarMark:
    session = offer.session
    terms = offer.first
    start = session.start or (terms.p50 if isinstance(terms, Predicted) else session.offer.start)
    end = session.until or start + session.offer.duration
    title = f"Offer {offer.number}: {clock.span(start, end)}, {resources(session.offer)}"
    mark = CalendarMark(
        str(offer.number), session.offer.nodes, start, end, title, _tone(offer), target=f"offer-{offer.number}"
    )
    if not isinstance(terms, Predicted) or session.started:
        return mark
    spread = (terms.p10, max(terms.p90, terms.p10) + session.offer.duration)
    often = f"likely to start between {clock.moment(terms.p10)} and {clock.moment(terms.p90)}"
    standing = "predicted" if session.offer.is_held else "predicted, nothing is held"
    return replace(mark, spread=spread, title=f"{title}; {standing}; {often}")


def _tone(offer: Numbered) -> str:
    if offer.open:
        return "offer" if offer.session.offer.is_held else "predicted"
    return "past" if offer.session.phase in NOT_TAKEN else "mine"


def _own(offers: Sequence[Numbered]) -> list[Take]:
    """Return what this offer set itself has taken in the calendar."""
    booked = [offer.session for offer in offers if offer.session.offer.is_in_calendar]
    own = list(hold_of([session.offer for session in booked if session.phase is Phase.OFFERED]))
    for session in booked:
        if session.phase in ACTIVE and session.start:
            own += takes_of(session.offer, session.start)
    return own
