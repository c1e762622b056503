"""The operator's price list: what an offer costs in money, energy and carbon."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from sublet.core.offer import Quote, Shape
from sublet.core.request import GIB

MONETARY = "urn:ivoa:calycopis:cost:monetary"
ENERGY = "urn:ivoa:calycopis:cost:energy"  # in kWh
CARBON = "urn:ivoa:calycopis:cost:carbon"  # in grams of CO2

HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Prices:
    """What each thing costs for an hour; nothing, unless the operator says so."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}  # a misspelt price is not a free one

    core_hour: float = 0.0
    memory_gib_hour: float = 0.0
    gpu_hour: float = 0.0
    storage_gib_hour: float = 0.0
    currency: str = "EUR"
    core_hour_energy: float = 0.0  # kWh
    core_hour_carbon: float = 0.0  # grams of CO2

    def __post_init__(self) -> None:
        """No price is less than nothing."""
        if not all(0 <= price < 1e12 for price in self._numbers()):
            raise ValueError("a price must be a number from 0 upwards")

    def _numbers(self) -> tuple[float, ...]:
        per_hour = (self.core_hour, self.memory_gib_hour, self.gpu_hour, self.storage_gib_hour)
        return (*per_hour, self.core_hour_energy, self.core_hour_carbon)

    def quote(self, shape: Shape, nodes: int, duration: timedelta, storage: int = 0) -> tuple[Quote, ...]:
        """What so many nodes of a shape, and so many bytes, cost for so long: money always, the rest if known."""
        hours = duration / HOUR
        per_node = shape.cores * self.core_hour + shape.memory / GIB * self.memory_gib_hour + shape.gpus * self.gpu_hour
        money = round((per_node * nodes + storage / GIB * self.storage_gib_hour) * hours, 4)
        quotes = [Quote(MONETARY, money, money, f"in {self.currency}")]
        core_hours = shape.cores * nodes * hours
        if self.core_hour_energy:
            energy = round(core_hours * self.core_hour_energy, 4)
            quotes.append(Quote(ENERGY, energy, energy, "in kWh"))
        if self.core_hour_carbon:
            carbon = round(core_hours * self.core_hour_carbon, 4)
            quotes.append(Quote(CARBON, carbon, carbon, "in grams of CO2"))
        return tuple(quotes)
