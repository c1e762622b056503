"""What all offers for one request on one platform have in common: the request, the pledges, the prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sublet.booking.model.calendar import Calendar
from sublet.booking.model.largest import most_storage
from sublet.booking.model.limits import check_costs
from sublet.booking.model.offer import Quote
from sublet.booking.model.pledge import pledge_text
from sublet.booking.model.pledged import most_of
from sublet.booking.model.pools import Placement
from sublet.booking.model.prices import Bill, PriceQuoter
from sublet.booking.model.request import GIB, Request
from sublet.booking.model.shape import Amounts, Shape

PARTS = 16  # if the maximum is not affordable, sizes are tried in this many steps


@dataclass(frozen=True, slots=True)
class Terms:
    """What all offers for one request on one platform have in common."""

    request: Request
    calendar: Calendar
    platform: str
    placements: tuple[Placement, ...]
    storage: dict[str, int]
    prices: PriceQuoter
    metrics: tuple[Quote, ...]
    now: datetime
    hold: timedelta
    release: timedelta
    horizon: timedelta
    at_most: int
    pledge: Mapping[str, int] = field(default_factory=dict)
    _bills: dict[tuple[Shape, int, int, datetime | None], Bill] = field(default_factory=dict)

    @property
    def least(self) -> Shape:
        """The minimum that each node must have."""
        return self.request.compute.least

    @property
    def where(self) -> str:
        """The platform, with the pledges that are drawn on."""
        return f"{self.platform} ({pledge_text(self.pledge)})" if self.pledge else self.platform

    @property
    def pledged(self) -> Shape:
        """The most that the pledges allow over all nodes."""
        return most_of(self.pledge, self.calendar.pools)

    def bill(
        self, shape: Shape, nodes: int, storage: Mapping[str, int] | None = None, start: datetime | None = None
    ) -> Bill:
        """Return what a shape on so many nodes costs, with the given storage or the minimum; cached."""
        booked = self.storage if storage is None else storage
        when = start if self.prices.is_by_hour else None
        key = (shape, nodes, sum(booked.values()), when)
        known = self._bills.get(key)
        if known is None:
            known = self._bills[key] = self.prices.bill(Amounts(shape, nodes, self.request.duration), booked, when)
        return known

    def is_affordable(self, shape: Shape, nodes: int, storage: Mapping[str, int] | None = None) -> bool:
        """Whether the cost is within the asker's limits."""
        return not check_costs(self.request, self.bill(shape, nodes, storage), self.platform)

    def affordable(self, shape: Shape, nodes: int) -> tuple[Shape, int]:
        """Return the shape and node count, reduced as far as the asker's cost limits require."""
        least, fewest = self.least, self.request.compute.nodes.min
        if not self.request.costs:
            return shape, nodes
        for count in dict.fromkeys((nodes, fewest)):
            for part in range(PARTS, 0, -1):
                some = Shape(
                    least.cores + (shape.cores - least.cores) * part // PARTS,
                    _between(least.memory, shape.memory, part),
                    least.gpus + (shape.gpus - least.gpus) * part // PARTS,
                    _between(least.disk, shape.disk, part),
                )
                if self.is_affordable(some, count):
                    return some, count
        return least, fewest

    def grow_storage(
        self, shape: Shape, nodes: int, pools: Mapping[str, str], room: Mapping[str, int]
    ) -> dict[str, int]:
        """Return as much storage as the request welcomes and the pools' room and the cost limits allow."""
        most = most_storage(self.request, self.storage, pools, room)
        for part in range(PARTS, 0, -1):
            grown = {name: _between(size, most[name], part) for name, size in self.storage.items()}
            if self.is_affordable(shape, nodes, grown):
                return grown
        return self.storage


def _between(least: int, most: int, part: int) -> int:
    """Return the size that is so many parts of the way from least to most, in whole GiB on top of the least."""
    return most if part == PARTS else least + (most - least) * part // PARTS // GIB * GIB
