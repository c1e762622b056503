"""Which of several offers a program accepts by default."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from sublet.booking.model.phases import Phase
from sublet.booking.views.offers import OfferSetView, OfferView
from sublet.client.facts import OfferFacts, OfferList
from sublet.kernel.errors import BadRequest, CostsMoney

O = TypeVar("O", bound=OfferFacts)  # noqa: E741 - an offer, of either client
MONETARY = "urn:ivoa:calycopis:cost:monetary"


NOT_TAKEN = frozenset({Phase.OFFERED, Phase.REJECTED, Phase.EXPIRED})


def find_taken(view: OfferSetView) -> OfferView | None:
    """Return the offer that an earlier request with the same key accepted, or None."""
    return next((offer for offer in view.offers if offer.phase not in NOT_TAKEN), None)


def keep_open(view: OfferSetView) -> OfferSetView:
    """Return the answer with only those offers that can still be accepted."""
    return replace(view, offers=tuple(offer for offer in view.offers if offer.phase == Phase.OFFERED))


def take_offer(offers: OfferList[O], document: Mapping[str, Any], choose: Callable[[Any], O] | None) -> O:
    """Return the offer that `choose` returns, or the best one without it."""
    if choose is None:
        return best_agreed(offers, document)
    offer = choose(offers)
    if not isinstance(offer, OfferFacts):
        raise BadRequest(
            detail=f"`choose` returned {offer!r}, not one of the offers",
            hint="Return one of them: choose=lambda offers: offers[0]. To decide first, use `client.ask` and accept.",
        )
    return offer


def has_cost_limit(document: Mapping[str, Any]) -> bool:
    """Whether a request limits its cost, so that the person needn't confirm a price."""
    return "max_cost" in document or "costs" in document


def best_agreed(offers: OfferList[O], document: Mapping[str, Any]) -> O:
    """Return the best offer, as `sublet run` does; raise CostsMoney if it has a price and the request has no limit."""
    offer = offers.choose()
    prices = [quote for quote in offer.view.costs if quote.type == MONETARY and quote.max]
    if prices and not has_cost_limit(document):
        coin = prices[0].description.removeprefix("in ")
        raise CostsMoney(price=f"{prices[0].max:g} {coin}".strip())
    return offer
