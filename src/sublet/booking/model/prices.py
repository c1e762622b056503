"""The operator's price list: what an offer costs in money, energy and carbon."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar

from sublet.booking.model.offer import Quote
from sublet.booking.model.request import GIB, Request
from sublet.booking.model.shape import Amounts, Shape

MONETARY = "urn:ivoa:calycopis:cost:monetary"
ENERGY = "urn:ivoa:calycopis:cost:energy"  # in kWh
CARBON = "urn:ivoa:calycopis:cost:carbon"  # in grams of CO2

HOUR = timedelta(hours=1)
NOTHING = Shape(0, 0)
_NUMBERED = re.compile(r"(storage|data)\[([0-9]+)\]")


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

    def quote(self, amounts: Amounts, storage: int = 0) -> tuple[Quote, ...]:
        """What these amounts, and so many bytes, cost for their time: money always, the rest if known."""
        shape, nodes, hours = amounts.shape, amounts.nodes, amounts.time / HOUR
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

    def bill(self, amounts: Amounts, storage: Mapping[str, int]) -> Bill:
        """The same, and what each component has of it."""
        total = self.quote(amounts, sum(storage.values()))
        compute = self.quote(amounts) if storage else total
        alone = Amounts(NOTHING, 0, amounts.time)
        return Bill(total, compute, {name: self.quote(alone, size) for name, size in storage.items()})


@dataclass(frozen=True, slots=True)
class Bill:
    """What an offer costs, as a whole and by component."""

    total: tuple[Quote, ...]
    compute: tuple[Quote, ...]
    storage: Mapping[str, tuple[Quote, ...]] = field(default_factory=dict)  # by the name of a storage, or of data

    def of(self, part: str, request: Request) -> tuple[Quote, ...]:
        """What a component of a request costs; what is not charged for costs nothing."""
        if not part:
            return self.total
        if part == "compute":
            return self.compute
        named = ""
        if match := _NUMBERED.fullmatch(part):
            components = request.storage if match[1] == "storage" else request.data
            named = components[int(match[2])].name if int(match[2]) < len(components) else ""
        nothing = tuple(Quote(quote.type, 0, 0, quote.description) for quote in self.total)
        return self.storage.get(named, nothing)
