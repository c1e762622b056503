"""Hours of a pledge on a shared queue: a session waits for them, and is given up if it can't end within them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sublet.booking.model.offer import Offer, Predicted
from sublet.booking.model.schedule import Schedule


def is_within(schedule: Schedule, start: datetime, end: datetime, now: datetime) -> bool:
    """Whether a time span lies within one continuous span of the schedule."""
    return any(opens <= start and end <= closes for opens, closes in schedule.hours(min(start, now)))


def move_into_hours(offer: Offer, schedule: Schedule, now: datetime) -> Offer | None:
    """Move a predicted offer into the first hours that are long enough; None if there are none by its latest start.

    The job may not begin before the hours open, and is given up if it could no longer end before they close.
    """
    asked_latest = offer.latest_start if offer.latest_start > offer.start else None
    likely = offer.terms.p50 if isinstance(offer.terms, Predicted) else offer.start
    for opens, closes in schedule.hours(now):
        start, latest = max(offer.start, opens), closes - offer.duration
        latest = min(latest, asked_latest) if asked_latest else latest
        if max(start, likely) < latest:
            return _begin_at(offer, start, latest)
        if asked_latest and opens > asked_latest:
            return None
    return None


def _begin_at(offer: Offer, start: datetime, latest: datetime) -> Offer:
    terms = offer.terms
    if isinstance(terms, Predicted):
        p10, p50, p90 = (max(moment, start) for moment in (terms.p10, terms.p50, terms.p90))
        terms = replace(terms, p10=p10, p50=p50, p90=p90)
    begin = offer.begin if start == offer.start else start
    return replace(offer, start=start, latest_start=latest, begin=begin, terms=terms)
