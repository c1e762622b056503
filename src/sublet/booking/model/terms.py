"""What holds for every offer to one request on one platform: who asks for what, of which part, at which price."""

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

PARTS = 16  # where not everything can be paid for, so many parts of it are tried


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for every offer to one request on one platform."""

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
        """What each node must have."""
        return self.request.compute.least

    @property
    def where(self) -> str:
        """The platform, and of its pledges those that are drawn on."""
        return f"{self.platform} ({pledge_text(self.pledge)})" if self.pledge else self.platform

    @property
    def pledged(self) -> Shape:
        """The most that can be drawn on over all nodes, as far as pledges go."""
        return most_of(self.pledge, self.calendar.pools)

    def bill(
        self, shape: Shape, nodes: int, storage: Mapping[str, int] | None = None, start: datetime | None = None
    ) -> Bill:
        """What it costs, with the least storage or with more; by the hour, or without a start the least."""
        booked = self.storage if storage is None else storage
        when = start if self.prices.is_by_hour else None
        key = (shape, nodes, sum(booked.values()), when)
        known = self._bills.get(key)
        if known is None:
            known = self._bills[key] = self.prices.bill(Amounts(shape, nodes, self.request.duration), booked, when)
        return known

    def is_affordable(self, shape: Shape, nodes: int, storage: Mapping[str, int] | None = None) -> bool:
        """Whether it keeps to the asker's limits on costs."""
        return not check_costs(self.request, self.bill(shape, nodes, storage), self.platform)

    def affordable(self, shape: Shape, nodes: int) -> tuple[Shape, int]:
        """The same, or as much of it as the asker's limits on costs allow."""
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
        """As much storage as is welcome, where its pools have so much room, and as the limits on costs allow."""
        most = most_storage(self.request, self.storage, pools, room)
        for part in range(PARTS, 0, -1):
            grown = {name: _between(size, most[name], part) for name, size in self.storage.items()}
            if self.is_affordable(shape, nodes, grown):
                return grown
        return self.storage


def _between(least: int, most: int, part: int) -> int:
    """So many parts of the way from the one to the other, in whole GiB on top of the least."""
    return most if part == PARTS else least + (most - least) * part // PARTS // GIB * GIB
