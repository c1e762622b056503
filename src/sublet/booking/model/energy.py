"""The energy and carbon of a session: as its platform measured it, or computed from the price list."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from sublet.booking.model.prices import HOUR, Tariff
from sublet.booking.model.session import End, Session, Usage

DIGITS = 9  # of kWh and grams: short sessions use little


def count_energy(session: Session, end: End, started: datetime | None, ended: datetime, tariff: Tariff) -> End:
    """Add the energy and carbon that were used to an end; return it unchanged if neither is known."""
    if started is None:
        return end
    usage = end.usage or Usage()
    wall = timedelta(seconds=usage.wall) if usage.wall else max(ended - started, timedelta(0))
    prices, shape = tariff.prices, session.offer.shape
    node_hours = session.offer.amounts.nodes * (wall / HOUR)
    rate = shape.cores * prices.core_hour_energy + shape.gpus * prices.gpu_hour_energy
    if usage.energy_source != "measured" and rate:
        usage = replace(usage, energy=round(node_hours * rate, DIGITS), energy_source="settings")
    if usage.energy_source and tariff.intensity is not None:
        carbon = usage.energy * tariff.intensity.mean(started, wall)
    else:
        carbon = node_hours * shape.cores * prices.core_hour_carbon
    if not (usage.energy_source or carbon):
        return end
    return replace(end, usage=replace(usage, carbon=round(carbon, DIGITS)))
