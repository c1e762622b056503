"""The offer that is accepted when the person doesn't choose one."""

from __future__ import annotations

from sublet.booking.model.session import OfferSet, Session
from sublet.kernel.errors import LoginNeeded


def best_offer(offerset: OfferSet) -> Session:
    """Return the best offer; raise LoginNeeded if it needs a login on a platform that the request didn't name."""
    best = offerset.offers[0]
    if best.offer.needs_login and not offerset.request.platform:
        name = best.offer.platform
        raise LoginNeeded(f"Only {name} could run it, and you are not signed in there.", platform=name)
    return best
