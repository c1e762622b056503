"""Checks of platforms' answers before they are shown: whether they are plausible, and how old their survey is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sublet.booking.model.offer import Answer, Offer, Predicted, Reason
from sublet.booking.model.request import Request
from sublet.booking.model.shape import is_enough
from sublet.booking.model.staging import NO_TIME, Spread, StagingEstimate, describe_spread

A_WHILE = timedelta(minutes=1)  # a younger survey counts as current
KEY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # the form of a session's id
NO_ANSWER = frozenset({"urn:platform-timed-out", "urn:platform-unreachable", "urn:platform-broken"})
SURVEYED = frozenset({"urn:resource-limit", "urn:not-supported"})  # kinds of reasons that are based on a survey


def find_fault(answer: object, platform: str, ways: Sequence[str], request: Request) -> str:
    """Return what is wrong with a platform's answer, or an empty text."""
    if not isinstance(answer, Answer):
        return f"it answered with {type(answer).__name__}"
    for offer in answer.offers:
        if fault := _fault_in(offer, platform, ways, request):
            return f"its offer {fault}"
    if not all(isinstance(reason, Reason) for reason in answer.reasons):
        return "its reasons can't be read"
    return ""


def _fault_in(offer: object, platform: str, ways: Sequence[str], request: Request) -> str:
    if not isinstance(offer, Offer):
        return f"is of the type {type(offer).__name__}"
    if offer.platform != platform:
        return f"is for the platform {offer.platform}"
    if offer.way not in ways:
        return f"names a way that was not asked for: {offer.way}"
    if offer.is_in_calendar:
        return "says that it is booked, and nobody keeps its calendar here"
    if offer.reservation and not KEY.fullmatch(offer.reservation):
        return "names a reservation that can't be a session's id"
    if offer.start.tzinfo is None or offer.latest_start.tzinfo is None or offer.latest_start < offer.start:
        return "has a start that can't be read"
    if not is_enough(offer.shape, request.compute.least):
        return "has less than was asked for"
    return ""


def date_reasons(reasons: Iterable[Reason], as_of: datetime, now: datetime) -> tuple[Reason, ...]:
    """Add to reasons the time of the survey that they are based on, if it isn't recent."""
    if now - as_of < A_WHILE:
        return tuple(reasons)
    return tuple(replace(reason, as_of=as_of) if reason.kind in SURVEYED else reason for reason in reasons)


def list_unanswered(reasons: Iterable[Reason]) -> tuple[str, ...]:
    """List the platforms that gave no answer."""
    return tuple(dict.fromkeys(reason.platform for reason in reasons if reason.kind in NO_ANSWER))


def delay_starts(answer: Answer, staging: StagingEstimate, now: datetime) -> Answer:
    """Delay a shared queue's offers by the staging time, because a job is submitted only when its data is there."""
    time = staging.time
    if not staging.lead:
        return answer
    offers: list[Offer] = []
    reasons = [*answer.reasons]
    for offer in answer.offers:
        later = _delay(offer, time, now) if isinstance(offer.terms, Predicted) else offer
        is_idle = bool(offer.reservation) and now + time.likely > offer.start  # it would begin without its data
        if is_idle or later.start > offer.latest_start > offer.start:
            why = f"{offer.platform} would have its data after {describe_spread(time)}, too late for the time asked."
            nearest = f"{later.start:%Y-%m-%dT%H:%M:%SZ}/PT1H"
            reasons.append(Reason("urn:window-passed", "schedule", why, nearest=nearest, platform=offer.platform))
        else:
            offers.append(replace(later, latest_start=max(later.start, offer.latest_start), prepare=staging.lead))
    return Answer(tuple(offers), tuple(reasons))


def _delay(offer: Offer, time: Spread, now: datetime) -> Offer:
    terms = offer.terms
    if not isinstance(terms, Predicted):
        return offer
    spare = max((offer.begin or now) - now, NO_TIME)  # nothing starts before `begin`: staging until then costs no time
    low, likely, high = (max(length - spare, NO_TIME) for length in (time.low, time.likely, time.high))
    later = replace(terms, p10=terms.p10 + low, p50=terms.p50 + likely, p90=terms.p90 + high)
    return replace(offer, start=offer.start + likely, terms=later)
