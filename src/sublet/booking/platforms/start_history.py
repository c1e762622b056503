"""A shared queue's track record, by which its predicted starts are corrected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sublet.booking.model.better_starts import SearchStart
from sublet.booking.model.estimate import ENOUGH, RECENT, Sample, predict, size_class
from sublet.booking.model.offer import Answer, Offer, Predicted, Reason
from sublet.booking.model.request import Request
from sublet.booking.model.session import Session
from sublet.platforms.port import Platform
from sublet.store.tx import Tx


def correct_starts(answer: Answer, samples: Sequence[Sample], now: datetime) -> Answer:
    """Return the answer with predicted starts corrected by the record; one that misses its window becomes a reason."""
    offers: list[Offer] = []
    reasons = [*answer.reasons]
    for offer in answer.offers:
        likely = _likely(offer, samples, now) if isinstance(offer.terms, Predicted) else offer
        if likely.start > max(offer.start, offer.latest_start) and offer.latest_start > offer.start:
            why = f"By its record {offer.platform} would start it at {likely.start:%Y-%m-%d %H:%M} UTC, too late."
            nearest = f"{likely.start:%Y-%m-%dT%H:%M:%SZ}/PT1H"
            reasons.append(Reason("urn:window-passed", "schedule", why, nearest=nearest, platform=offer.platform))
        else:
            offers.append(likely)
    return Answer(tuple(offers), tuple(reasons))


def _likely(offer: Offer, samples: Sequence[Sample], now: datetime) -> Offer:
    terms = offer.terms
    if not isinstance(terms, Predicted) or not offer.queue:
        return offer
    size = size_class(offer.amounts.nodes, offer.shape.cores)
    predicted = predict(samples, offer.queue, size, terms.p50, now, offer.duration, offer.begin)
    known = Predicted(predicted.p10, predicted.p50, predicted.p90, predicted.samples, terms.as_of, planned=terms.p50)
    latest = offer.latest_start if offer.latest_start > offer.start else predicted.p50
    return replace(offer, start=predicted.p50, latest_start=latest, terms=known)


def is_queued(answer: Answer) -> bool:
    """Whether any offer waits in a queue, so that its start is predicted."""
    return any(offer.terms.kind == "predicted" and offer.queue for offer in answer.offers)


def search_by_record(best: Offer, samples: Sequence[Sample], now: datetime) -> SearchStart:
    """Return a function that predicts when a changed request would start in the queue of the best offer."""

    def search(changed: Request) -> datetime | None:
        terms = best.terms
        if not isinstance(terms, Predicted) or not best.queue:
            return None
        base, cores = max(best.begin or now, now), min(changed.compute.cores.min, best.shape.cores)
        begin = max(changed.windows[0].start, now) if changed.windows else now
        planned = begin + max((terms.planned or terms.p50) - base, timedelta(0))
        size = size_class(best.amounts.nodes, cores)
        likely = predict(samples, best.queue, size, planned, now, changed.duration, begin)
        return max(likely.p50, begin) if likely.samples >= ENOUGH else None

    return search


def recall(tx: Tx, platform: Platform, now: datetime) -> list[Sample]:
    """Return the recent samples of a platform, at its present site."""
    return tx.starts.since(platform.name, now - RECENT, platform.site)


def record(tx: Tx, session: Session, site: str) -> None:
    """Record when a session of a shared queue started, and when that was planned."""
    offer, terms = session.offer, session.offer.terms
    if isinstance(terms, Predicted) and terms.planned and session.started and offer.queue and not offer.after:
        queued = session.started - (session.staged or timedelta(0))  # the queue isn't responsible for staging
        at = max(session.created, offer.begin or session.created)
        shape = (offer.queue, offer.amounts.nodes, offer.shape.cores)
        sample = Sample(*shape, terms.planned, queued, at, offer.duration)
        tx.starts.add(session.id, offer.platform, sample, site)
