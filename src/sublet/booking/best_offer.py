"""The offer that is taken when nobody chooses."""

from __future__ import annotations

from sublet.booking.model.session import OfferSet, Session
from sublet.kernel.errors import LoginNeeded


def best_offer(offerset: OfferSet) -> Session:
    """The first of the offers; LoginNeeded if it waits for a person, on a platform that nobody named."""
    best = offerset.offers[0]
    if best.offer.needs_login and not offerset.request.platform:
        name = best.offer.platform
        raise LoginNeeded(f"Only {name} could run it, and you are not signed in there.", platform=name)
    return best
