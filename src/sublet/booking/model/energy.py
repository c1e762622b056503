"""What a session used in energy and carbon: as its platform measured it, else as the price list says of its cores."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from sublet.booking.model.prices import CARBON, ENERGY, Tariff
from sublet.booking.model.session import End, Session, Usage
from sublet.booking.model.shape import Amounts

DIGITS = 6


def count_energy(session: Session, end: End, started: datetime | None, ended: datetime, tariff: Tariff) -> End:
    """The end with the energy and the carbon of what was used; as it is, where neither is known."""
    if started is None:
        return end
    usage = end.usage or Usage()
    wall = timedelta(seconds=usage.wall) if usage.wall else max(ended - started, timedelta(0))
    amounts = Amounts(session.offer.shape, session.offer.amounts.nodes, wall)
    quotes = {quote.type: quote.max for quote in tariff.bill(amounts, {}, started).total}
    energy, carbon = quotes.get(ENERGY), quotes.get(CARBON, 0.0)
    if usage.energy_source == "measured":
        if tariff.intensity is not None:
            carbon = usage.energy * tariff.intensity.mean(started, wall)
        return replace(end, usage=replace(usage, carbon=round(carbon, DIGITS)))
    if energy is None and not carbon:
        return end
    source = usage.energy_source if energy is None else "settings"
    return replace(end, usage=replace(usage, energy=energy or 0.0, carbon=round(carbon, DIGITS), energy_source=source))
