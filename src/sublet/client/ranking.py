"""Which offer is chosen, and why: the best by the order of `booking.model.ranking`, preferably without a login."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sublet.booking.model.ranking import PREFERENCES, Preference, Rated, explain_choice, sort_offers
from sublet.booking.views.offers import OfferSetView, OfferView
from sublet.kernel.errors import BadRequest, LoginNeeded


@dataclass(frozen=True)
class Choice:
    """The chosen offer, and the reason for it if there were others."""

    offer: OfferView
    why: str = ""


def rate_offer(view: OfferView) -> Rated:
    """Return the facts of an offer by which offers are compared."""
    return Rated(
        platform=view.platform,
        start=view.start,
        terms=view.terms.kind,
        p90=view.terms.p90,
        price=sum(cost.max for cost in view.costs),
        cores=view.cores,
        memory=view.memory,
        is_here=view.is_here,
        needs_login=view.needs_login,
        detail=view.id,
    )


def preference(word: str) -> Preference:
    """Validate the name of a preference; raise BadRequest if it is unknown."""
    if word not in PREFERENCES:
        known = ", ".join(PREFERENCES)
        raise BadRequest(detail=f"there is no preference {word!r}.", hint=f"Prefer one of: {known}.")
    return word


def sort_views(view: OfferSetView, prefer: str = "") -> OfferSetView:
    """Return the answer with its offers sorted by a preference; without one, they stay as the service sorted them."""
    if not prefer:
        return view
    order = preference(prefer)
    return replace(view, offers=tuple(sort_offers(view.offers, rate_offer, order)), prefer=order)


def choose(view: OfferSetView, prefer: str = "") -> Choice:
    """Return the best offer and the reason for it; it may need a login."""
    known = view.prefer if view.prefer in PREFERENCES else "soonest"  # a newer service may have others
    order = preference(prefer or known)
    ranked = sort_offers(view.offers, rate_offer, order)
    return Choice(ranked[0], explain_choice(rate_offer(ranked[0]), [rate_offer(offer) for offer in ranked], order))


def login_needed(offers: Sequence[OfferView]) -> LoginNeeded:
    """Return the error for offers that all need a login."""
    names = list(dict.fromkeys(offer.platform for offer in offers))
    only = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    return LoginNeeded(f"Only {only} could run it, and you are not signed in there.", platform=names[0])
