"""Which of several offers a program takes that says nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from sublet.client.facts import OfferFacts, OfferList
from sublet.errors import CostsMoney

O = TypeVar("O", bound=OfferFacts)  # noqa: E741 - an offer, of either client
MONETARY = "urn:ivoa:calycopis:cost:monetary"


def earliest(offers: Sequence[O]) -> O:
    """The one that starts first; NoOffers with the reasons if there is none."""
    return min(offers, key=lambda offer: offer.start) if offers else offers[0]


def earliest_agreed(offers: OfferList[O], document: Mapping[str, Any]) -> O:
    """The one that starts first, if it costs nothing or the request says how much it may cost."""
    offer = earliest(offers)
    prices = [quote for quote in offer.view.costs if quote.type == MONETARY and quote.max]
    if prices and not ("max_cost" in document or "costs" in document):
        coin = prices[0].description.removeprefix("in ")
        raise CostsMoney(price=f"{prices[0].max:g} {coin}".strip())
    return offer
