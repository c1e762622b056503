"""On which terms an offer is made, in words and values that every IVOA client can read: a message, and its start."""

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

TERMS = "urn:sublet:terms"  # the kind of the message that says it
RUN_TIME = "urn:sublet:run-time"  # of the message that says how long it will run, as earlier runs did
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
    """The first and the last moment at which a session is likely to start; the same, if that is settled."""
    offer = session.offer
    if session.started:
        started = session.started.replace(microsecond=0)  # to the second, as it was booked
        return started, started
    if isinstance(offer.terms, Predicted):
        return _likely(offer, offer.terms)
    if isinstance(offer.terms, Remote):  # as the other broker said: from when until when, also after it is accepted
        return offer.start, offer.latest_start
    if session.start is not None:
        return session.start, session.start
    return offer.start, offer.latest_start


def _likely(offer: Offer, terms: Predicted) -> tuple[datetime, datetime]:
    """From the tenth to the ninetieth percentile, inside the window that was asked for."""
    first = min(max(terms.p10, offer.begin or terms.p10), offer.start)
    last = max(terms.p90, offer.start)
    if first == last and terms.samples < ENOUGH:  # nobody knows how far it is off, and nobody should think it exact
        last = first + LEAST_DOUBT
    if offer.latest_start > offer.start:
        last = min(last, offer.latest_start)
    return _whole(first), _whole(last)


def _whole(time: datetime) -> datetime:
    return time.replace(microsecond=0)


def _describe_prediction(terms: Terms | None, instant: Callable[[datetime], str]) -> dict[str, str]:
    """The percentiles of a predicted start, whoever predicted it."""
    if not isinstance(terms, Predicted):
        return {}
    values = {"p10": instant(terms.p10), "p50": instant(terms.p50), "p90": instant(terms.p90)}
    values["samples"] = str(terms.samples)
    return values | ({"as-of": instant(terms.as_of)} if terms.as_of else {})


def describe_terms(session: Session, instant: Callable[[datetime], str]) -> tuple[str, dict[str, str]]:
    """A sentence with the names of values in it, and the values: all are text, as messages have it."""
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
    """The same of how long it will run."""
    values = {"p10": estimate.low, "p50": estimate.likely, "p90": estimate.high}
    lengths = {name: duration_iso(length) for name, length in values.items()}
    return _RAN, lengths | {"runs": str(estimate.runs), "program": estimate.program, "whose": estimate.whose}


def _choose_sentence(terms: Terms, first: Terms | None) -> str:
    return f"{terms.kind} {first.kind}" if isinstance(terms, Remote) and first else terms.kind
