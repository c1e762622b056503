"""On which terms an offer is made, in words and values that every IVOA client can read: a message, and its start."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from sublet.booking.model.estimate import ENOUGH, LEAST_DOUBT
from sublet.booking.model.offer import Offer, Predicted, Remote
from sublet.booking.model.phases import Phase
from sublet.booking.model.pledge import pledge_text
from sublet.booking.model.session import Session

TERMS = "urn:sublet:terms"  # the kind of the message that says it

_SENTENCES = {
    "booked": "Held on ${platform} for you until it expires or is declined; it starts as offered.",
    "remote": "An offer of another broker, ${url}, passed on by ${platform}.",
    "predicted": (
        "Nothing is held on ${platform}: when it starts is a prediction, likely between ${p10} and ${p90}, "
        "as a queue that others share decides."
    ),
}
_TAKEN = {
    "booked": "Booked on ${platform}.",
    "remote": "Taken at another broker, ${url}, by way of ${platform}.",
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


def describe_terms(session: Session, instant: Callable[[datetime], str]) -> tuple[str, dict[str, str]]:
    """A sentence with the names of values in it, and the values: all are text, as messages have it."""
    offer, terms = session.offer, session.offer.terms
    values = {"terms": terms.kind, "platform": offer.platform}
    values["held"] = "true" if terms.kind == "booked" and session.phase is Phase.OFFERED else "false"
    if isinstance(terms, Predicted):
        values |= {"p10": instant(terms.p10), "p50": instant(terms.p50), "p90": instant(terms.p90)}
        values["samples"] = str(terms.samples)
        values |= {"as-of": instant(terms.as_of)} if terms.as_of else {}
    if isinstance(terms, Remote):
        values["url"] = terms.url
    values |= {name: text for name, text in (("queue", offer.queue), ("pledge", pledge_text(offer.pledge))) if text}
    sentences = _SENTENCES if session.phase is Phase.OFFERED else _TAKEN
    return sentences[terms.kind], values
