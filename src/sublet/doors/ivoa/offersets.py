"""Offer sets as IVOA Execution Broker 1.0.7 documents."""

from __future__ import annotations

from collections.abc import Sequence

from sublet.booking.documents.kinds import uri_of
from sublet.booking.model.session import OfferSet
from sublet.doors.ivoa.sessions import Document, instant, message, reason_message, session_document

OFFERSET = uri_of("offerset", "execution-offerset")
NOTE = "urn:sublet:note"


def offerset_document(offerset: OfferSet, base: str, notes: Sequence[str] = ()) -> Document:
    """Return an offer set as an OfferSetResponse: YES with its offers, or NO with a message for each reason."""
    level = "WARN" if offerset.result == "NO" else "INFO"
    messages = [reason_message(reason, offerset.created, level) for reason in offerset.reasons]
    messages += [message(NOTE, offerset.created, "INFO", note) for note in notes]
    return {
        "kind": OFFERSET,
        "meta": {
            "uuid": offerset.id,
            "url": f"{base}/offersets/{offerset.id}",
            "created": instant(offerset.created),
            "messages": messages,
        },
        "result": offerset.result,
        "offers": [session_document(offer, offerset.request, base) for offer in offerset.offers],
    }
