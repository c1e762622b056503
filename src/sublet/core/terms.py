"""What holds for every offer to one request on one platform: who asks for what, of which part, at which price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sublet.core.calendar import Calendar
from sublet.core.largest import least_of
from sublet.core.limits import check_costs
from sublet.core.offer import Quote, Shape
from sublet.core.pledge import pledge_text
from sublet.core.prices import Prices
from sublet.core.request import Request
from sublet.core.timeline import MOST

PARTS = 16  # where not everything can be paid for, so many parts of it are tried


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for every offer to one request on one platform."""

    request: Request
    calendar: Calendar
    platform: str
    pool: str
    storage: dict[str, int]
    prices: Prices
    metrics: tuple[Quote, ...]
    now: datetime
    hold: timedelta
    release: timedelta
    horizon: timedelta
    at_most: int
    pledge: Mapping[str, int] = field(default_factory=dict)
    _quotes: dict[tuple[Shape, int], tuple[Quote, ...]] = field(default_factory=dict)

    @property
    def least(self) -> Shape:
        """What each node must have."""
        return least_of(self.request.compute)

    @property
    def where(self) -> str:
        """The platform, and of its pledges those that are drawn on."""
        return f"{self.platform} ({pledge_text(self.pledge)})" if self.pledge else self.platform

    @property
    def pledged(self) -> int:
        """The most cores that can be drawn on, as far as pledges go."""
        return sum(self.pledge.values()) if self.pledge else MOST

    def quote(self, shape: Shape, nodes: int) -> tuple[Quote, ...]:
        """What it costs."""
        known = self._quotes.get((shape, nodes))
        if known is None:
            known = self.prices.quote(shape, nodes, self.request.duration, sum(self.storage.values()))
            self._quotes[shape, nodes] = known
        return known

    def affordable(self, shape: Shape, nodes: int) -> tuple[Shape, int]:
        """The same, or as much of it as the asker's limits on costs allow."""
        costs, least, fewest = self.request.costs, self.least, self.request.compute.nodes.min
        if not costs:
            return shape, nodes
        for count in dict.fromkeys((nodes, fewest)):
            for part in range(PARTS, 0, -1):
                some = Shape(
                    least.cores + (shape.cores - least.cores) * part // PARTS,
                    least.memory + (shape.memory - least.memory) * part // PARTS,
                    least.gpus + (shape.gpus - least.gpus) * part // PARTS,
                )
                if not check_costs(costs, self.quote(some, count), self.platform):
                    return some, count
        return least, fewest
