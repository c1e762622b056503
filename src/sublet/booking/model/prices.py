"""The operator's price list: what an offer costs in money, energy and carbon, by platform, pledge and hour."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Protocol

from sublet.booking.model.intensity import Intensity
from sublet.booking.model.offer import Quote
from sublet.booking.model.pledge import shares
from sublet.booking.model.request import GIB, Recurring, Request
from sublet.booking.model.shape import Amounts, Shape
from sublet.booking.model.windows import expand, parse_start
from sublet.kernel.errors import SubletError

MONETARY = "urn:ivoa:calycopis:cost:monetary"
ENERGY = "urn:ivoa:calycopis:cost:energy"  # in kWh
CARBON = "urn:ivoa:calycopis:cost:carbon"  # in grams of CO2

ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
NOTHING = Shape(0, 0)
_NUMBERED = re.compile(r"(storage|data)\[([0-9]+)\]")
_FORBID: dict[str, str] = {"extra": "forbid"}  # a misspelt price is not a free one


class PriceQuoter(Protocol):
    """Anything that can price amounts from a start on."""

    @property
    def is_by_hour(self) -> bool:
        """Whether prices depend on the start."""
        ...

    def bill(self, amounts: Amounts, storage: Mapping[str, int], start: datetime | None = None) -> Bill:
        """Return the cost of these amounts, in total and by component; without a start, the least it can be."""
        ...


@dataclass(frozen=True, slots=True)
class PriceChange:
    """Prices of one platform or pledge that differ from the general ones."""

    __pydantic_config__: ClassVar[dict[str, str]] = _FORBID

    core_hour: float | None = None
    memory_gib_hour: float | None = None
    gpu_hour: float | None = None
    storage_gib_hour: float | None = None
    core_hour_energy: float | None = None
    gpu_hour_energy: float | None = None
    core_hour_carbon: float | None = None
    currency: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError if a price is negative or absurdly large."""
        _check_numbers(value for value in self.list_changes().values() if not isinstance(value, str))

    def list_changes(self) -> dict[str, float | str]:
        """Return the prices that differ, by name."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, slots=True)
class PricePeriod:
    """Recurring times, as `weekdays 19:00-07:00 Europe/Berlin`, and the factor by which money prices change then."""

    __pydantic_config__: ClassVar[dict[str, str]] = _FORBID

    when: str
    factor: float

    def __post_init__(self) -> None:
        """Raise ValueError unless the factor is a number from 0 upwards and the time recurs."""
        _check_numbers([self.factor])
        read_period(self.when)


@lru_cache(maxsize=256)
def read_period(text: str) -> Recurring:
    """Parse recurring windows; raise ValueError if the text is something else."""
    try:
        read = parse_start(text, ANY_DAY)
    except SubletError as error:
        raise ValueError(error.sentences) from error
    if not isinstance(read, Recurring):
        raise ValueError(f"{text!r} comes only once; write days and hours, as in weekdays 19:00-07:00 Europe/Berlin")
    return read


@dataclass(frozen=True, slots=True)
class Prices:
    """What each resource costs per hour, in money, energy and carbon; all are zero unless the operator sets them."""

    __pydantic_config__: ClassVar[dict[str, str]] = _FORBID

    core_hour: float = 0.0
    memory_gib_hour: float = 0.0
    gpu_hour: float = 0.0
    storage_gib_hour: float = 0.0
    currency: str = "EUR"
    core_hour_energy: float = 0.0  # kWh
    gpu_hour_energy: float = 0.0  # kWh
    core_hour_carbon: float = 0.0  # grams of CO2, where no intensity is known
    hours: tuple[PricePeriod, ...] = ()  # the first period that contains a time applies
    carbon_intensity: str = ""  # a file or an http(s) address with grams of CO2 for each kWh, by the hour
    platforms: Mapping[str, PriceChange] = field(default_factory=dict)
    pledges: Mapping[str, PriceChange] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError if a price is negative or absurdly large."""
        _check_numbers(getattr(self, name) for name in RATES)

    @property
    def is_by_hour(self) -> bool:
        """Whether prices depend on the start."""
        return bool(self.hours)

    def at(self, platform: str, pledge: Mapping[str, int] | None = None) -> Prices:
        """Return the prices of one platform, averaged over the pledges that are drawn on by their shares."""
        if not (self.platforms or self.pledges):  # the usual case: saves a copy
            return self
        here = replace(self, **_changes(self.platforms.get(platform)))
        changed = [name for name in pledge or () if name in self.pledges]
        if not changed or pledge is None:
            return here
        parts = shares(pledge)
        lists = {name: replace(here, **_changes(self.pledges.get(name))) for name in pledge}
        mean = {rate: sum(getattr(lists[name], rate) * float(parts[name]) for name in pledge) for rate in RATES}
        return replace(here, **mean, currency=lists[changed[0]].currency)

    def quote(
        self, amounts: Amounts, storage: int = 0, start: datetime | None = None, grams: float | None = None
    ) -> tuple[Quote, ...]:
        """Return the cost of these amounts and so many bytes: money always, energy and carbon if known.

        `grams` is the carbon intensity at that time.
        """
        shape, nodes, hours = amounts.shape, amounts.nodes, amounts.time / HOUR
        per_node = shape.cores * self.core_hour + shape.memory / GIB * self.memory_gib_hour + shape.gpus * self.gpu_hour
        money = (per_node * nodes + storage / GIB * self.storage_gib_hour) * hours
        money = round(money * self.factor(start, amounts.time), 4)
        quotes = [Quote(MONETARY, money, money, f"in {self.currency}")]
        core_hours, gpu_hours = shape.cores * nodes * hours, shape.gpus * nodes * hours
        energy = round(core_hours * self.core_hour_energy + gpu_hours * self.gpu_hour_energy, 4)
        if self.core_hour_energy or self.gpu_hour_energy:
            quotes.append(Quote(ENERGY, energy, energy, "in kWh"))
        is_known = grams is not None and bool(self.core_hour_energy or self.gpu_hour_energy)
        if is_known or self.core_hour_carbon:
            carbon = round(energy * (grams or 0) if is_known else core_hours * self.core_hour_carbon, 4)
            quotes.append(Quote(CARBON, carbon, carbon, "in grams of CO2"))
        return tuple(quotes)

    def factor(self, start: datetime | None, length: timedelta) -> float:
        """Return the mean factor on money prices over a time; without a start, the lowest factor."""
        if not self.hours:
            return 1.0
        if start is None:
            return min(1.0, *(period.factor for period in self.hours))
        return mean_factor(self.hours, start, length)

    def bill(
        self,
        amounts: Amounts,
        storage: Mapping[str, int],
        start: datetime | None = None,
        grams: float | None = None,
    ) -> Bill:
        """Return the total cost, and the cost of each component."""
        total = self.quote(amounts, sum(storage.values()), start, grams)
        compute = self.quote(amounts, 0, start, grams) if storage else total
        alone = Amounts(NOTHING, 0, amounts.time)
        parts = {name: self.quote(alone, size, start, grams) for name, size in storage.items()}
        return Bill(total, compute, parts)


@dataclass(frozen=True, slots=True)
class Tariff:
    """The prices of one platform and pledge, and the carbon intensity there."""

    prices: Prices
    intensity: Intensity | None = None

    @property
    def is_by_hour(self) -> bool:
        """Whether costs depend on the start."""
        return self.prices.is_by_hour or self.intensity is not None

    def bill(self, amounts: Amounts, storage: Mapping[str, int], start: datetime | None = None) -> Bill:
        """Return what these amounts cost from a start on; without one, the least they can cost."""
        grams = None
        if self.intensity is not None:
            grams = self.intensity.mean(start, amounts.time) if start else self.intensity.least
        return self.prices.bill(amounts, storage, start, grams)


@lru_cache(maxsize=4096)
def mean_factor(periods: tuple[PricePeriod, ...], start: datetime, length: timedelta) -> float:
    """Return the mean factor over a time: at each moment that of the first matching period, else 1."""
    end = start + max(length, timedelta(seconds=1))
    windows = [(window, period.factor) for period in periods for window in expand(read_period(period.when), start, end)]
    edges = sorted({start, end, *(edge for window, _ in windows for edge in (window.start, window.end))})
    cuts = [edge for edge in edges if start <= edge <= end]
    total = 0.0
    for first, last in pairwise(cuts):
        factor = next((factor for window, factor in windows if window.start <= first < window.end), 1.0)
        total += factor * ((last - first) / HOUR)
    return total / ((end - start) / HOUR)


RATES = tuple(each.name for each in fields(PriceChange) if each.name != "currency")


def _changes(change: PriceChange | None) -> Mapping[str, Any]:
    return change.list_changes() if change else {}


def _check_numbers(numbers: Iterable[Any]) -> None:
    if not all(0 <= number < 1e12 for number in numbers):
        raise ValueError("a price must be a number from 0 upwards")


@dataclass(frozen=True, slots=True)
class Bill:
    """What an offer costs, in total and by component."""

    total: tuple[Quote, ...]
    compute: tuple[Quote, ...]
    storage: Mapping[str, tuple[Quote, ...]] = field(default_factory=dict)  # by the name of a storage, or of data

    def of(self, part: str, request: Request) -> tuple[Quote, ...]:
        """Return what a component of a request costs; one without a charge costs nothing."""
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
