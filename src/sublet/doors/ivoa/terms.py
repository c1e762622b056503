"""The terms of an offer, as a message with text and values that every IVOA client can read, and its likely start."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sublet.booking.model.estimate import ENOUGH, LEAST_DOUBT
from sublet.booking.model.offer import Offer, Predicted, Remote, Terms, find_first_terms, list_route
from sublet.booking.model.phases import Phase
from sublet.booking.model.pledge import pledge_text
from sublet.booking.model.run_time import RunEstimate
from sublet.booking.model.session import Session
from sublet.kernel.views import duration_iso

TERMS = "urn:sublet:terms"  # the kind of the message about the terms
RUN_TIME = "urn:sublet:run-time"  # the kind of the message about the run time, by earlier runs
_RAN = "As earlier runs of ${program} did, it is likely to run for ${p10} to ${p90}."

_SENTENCES = {
    "booked": "Held on ${platform} for you until it expires or is declined; it starts as offered.",
    "remote": "An offer of another broker, ${platform} (${url}), which does not say on which terms it is made.",
    "remote booked": "Another broker, ${platform}, holds it on ${route} until it expires or is declined.",
    "remote predicted": (
        "Nothing is held on ${route}: another broker, ${platform}, predicts that it starts between ${p10} and ${p90}, "
        "as a queue that others share decides."
    ),
    "predicted": (
        "Nothing is held on ${platform}: when it starts is a prediction, likely between ${p10} and ${p90}, "
        "as a queue that others share decides."
    ),
}
_TAKEN = {
    "booked": "Booked on ${platform}.",
    "remote": "Taken at another broker, ${platform} (${url}).",
    "remote booked": "Booked at another broker, on ${route}.",
    "remote predicted": (
        "In a queue on ${route} that others share, at another broker: likely to start between ${p10} and ${p90}."
    ),
    "predicted": "In a queue on ${platform} that others share: likely to start between ${p10} and ${p90}.",
}


def starts_between(session: Session) -> tuple[datetime, datetime]:
    """Return the earliest and latest likely start of a session; equal if the start is fixed."""
    offer = session.offer
    if session.started:
        started = session.started.replace(microsecond=0)  # to the second, as it was booked
        return started, started
    if isinstance(offer.terms, Predicted):
        return _likely(offer, offer.terms)
    if isinstance(offer.terms, Remote):  # as the other broker stated, even after acceptance
        return offer.start, offer.latest_start
    if session.start is not None:
        return session.start, session.start
    return offer.start, offer.latest_start


def _likely(offer: Offer, terms: Predicted) -> tuple[datetime, datetime]:
    """Return the 10th to 90th percentile of the start, within the requested window."""
    first = min(max(terms.p10, offer.begin or terms.p10), offer.start)
    last = max(terms.p90, offer.start)
    if first == last and terms.samples < ENOUGH:  # too few samples to look exact
        last = first + LEAST_DOUBT
    if offer.latest_start > offer.start:
        last = min(last, offer.latest_start)
    return _whole(first), _whole(last)


def _whole(time: datetime) -> datetime:
    return time.replace(microsecond=0)


def _describe_prediction(terms: Terms | None, instant: Callable[[datetime], str]) -> dict[str, str]:
    """Return the percentiles of a predicted start, whoever predicted it."""
    if not isinstance(terms, Predicted):
        return {}
    values = {"p10": instant(terms.p10), "p50": instant(terms.p50), "p90": instant(terms.p90)}
    values["samples"] = str(terms.samples)
    return values | ({"as-of": instant(terms.as_of)} if terms.as_of else {})


def describe_terms(session: Session, instant: Callable[[datetime], str]) -> tuple[str, dict[str, str]]:
    """Return a template for a sentence, and its values, all as text as messages require."""
    offer, terms = session.offer, session.offer.terms
    values = {"terms": terms.kind, "platform": offer.platform}
    values["held"] = "true" if offer.is_held and session.phase is Phase.OFFERED else "false"
    if isinstance(terms, Remote):
        values |= {"url": terms.url, "route": "/".join(list_route(offer.platform, terms))}
        values |= {"maker": terms.maker} if terms.maker else {}
    first = find_first_terms(terms)
    if isinstance(terms, Remote) and first:
        values["inner-terms"] = first.kind
    values |= _describe_prediction(first, instant)
    values |= {name: text for name, text in (("queue", offer.queue), ("pledge", pledge_text(offer.pledge))) if text}
    sentences = _SENTENCES if session.phase is Phase.OFFERED else _TAKEN
    return sentences[_choose_sentence(terms, first)], values


def describe_run_time(estimate: RunEstimate) -> tuple[str, dict[str, str]]:
    """Return a template for the predicted run time, and its values."""
    values = {"p10": estimate.low, "p50": estimate.likely, "p90": estimate.high}
    lengths = {name: duration_iso(length) for name, length in values.items()}
    return _RAN, lengths | {"runs": str(estimate.runs), "program": estimate.program, "whose": estimate.whose}


def _choose_sentence(terms: Terms, first: Terms | None) -> str:
    return f"{terms.kind} {first.kind}" if isinstance(terms, Remote) and first else terms.kind
