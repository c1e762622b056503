"""The price of a session that is extended."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from sublet.booking.model.limits import check_costs
from sublet.booking.model.offer import Offer
from sublet.booking.model.session import Session
from sublet.booking.price_book import PriceBook
from sublet.kernel.errors import OverCostLimit
from sublet.store.tx import Tx


def price_longer(tx: Tx, session: Session, duration: timedelta, book: PriceBook) -> Offer:
    """Return the session's offer with its new length and price; raise OverCostLimit if that exceeds the request's."""
    offer = session.offer
    prices = book.of(offer.platform, offer.pledge)
    bill = prices.bill(replace(offer.amounts, time=duration), offer.storage, session.start or offer.start)
    offerset = tx.offersets.get(session.offerset)
    reasons = check_costs(offerset.request, bill, offer.platform) if offerset else []
    if reasons:
        until = (session.start or offer.start) + duration
        raise OverCostLimit(until=f"{until:%Y-%m-%dT%H:%M:%SZ}", why=reasons[0].message)
    return replace(offer, duration=duration, costs=bill.total, compute_costs=bill.compute, storage_costs=bill.storage)
