"""Which of the offers is taken, and why: the best in the order of `booking.model.ranking` that needs no login."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sublet.booking.model.ranking import PREFERENCES, Preference, Rated, explain_choice, sort_offers
from sublet.booking.views.offers import OfferSetView, OfferView
from sublet.kernel.errors import BadRequest, LoginNeeded


@dataclass(frozen=True)
class Choice:
    """The offer that is taken, and what speaks for it where there were others."""

    offer: OfferView
    why: str = ""


def rate_offer(view: OfferView) -> Rated:
    """What of an offer is compared with others."""
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
    """The preference of this name; BadRequest if there is none."""
    if word not in PREFERENCES:
        known = ", ".join(PREFERENCES)
        raise BadRequest(detail=f"there is no preference {word!r}.", hint=f"Prefer one of: {known}.")
    return word


def sort_views(view: OfferSetView, prefer: str = "") -> OfferSetView:
    """The answer with its offers sorted by what is preferred; as the service sorted them, if nothing is."""
    if not prefer:
        return view
    order = preference(prefer)
    return replace(view, offers=tuple(sort_offers(view.offers, rate_offer, order)), prefer=order)


def choose(view: OfferSetView, prefer: str = "") -> Choice:
    """The best of these offers; it may need a login."""
    known = view.prefer if view.prefer in PREFERENCES else "soonest"  # of a newer service
    order = preference(prefer or known)
    ranked = sort_offers(view.offers, rate_offer, order)
    return Choice(ranked[0], explain_choice(rate_offer(ranked[0]), [rate_offer(offer) for offer in ranked], order))


def login_needed(offers: Sequence[OfferView]) -> LoginNeeded:
    """The error for offers of which each needs a login."""
    names = list(dict.fromkeys(offer.platform for offer in offers))
    only = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    return LoginNeeded(f"Only {only} could run it, and you are not signed in there.", platform=names[0])
