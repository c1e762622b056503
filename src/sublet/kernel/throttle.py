"""How often someone may try something: beyond that they are told to wait, and for how long.

What is counted here is counted in this process alone: several processes let through several times as much. What must
hold across all of them (the tries of one code) is counted in the database, beside the thing that is tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from ipaddress import IPv6Address, ip_address, ip_network
from time import monotonic

from sublet.kernel.errors import TooMany
from sublet.kernel.rate_limits import RateLimit

MOST_KNOWN = 20_000  # of those who tried something; whoever tried the least is forgotten first


class Throttle:
    """Who has tried what, as one number each: when their tries will be forgotten."""

    def __init__(self, limits: Mapping[str, RateLimit], clock: Callable[[], float] = monotonic) -> None:
        """Nobody has tried anything yet; the limits are the operator's, by their names in the settings."""
        self._limits = limits
        self._clock = clock
        self._until: dict[tuple[str, str], float] = {}

    def spend(self, what: str, who: str) -> None:
        """Count one try; TooMany if there were too many already, which is not counted again."""
        limit, now = self._limits[what], self._clock()
        until = max(self._until.get((what, who), now), now)
        wait = until + limit.each - now - limit.per.total_seconds()
        if wait > 1e-6:  # less is the error of sums
            raise TooMany(seconds=math.ceil(wait))
        if len(self._until) >= MOST_KNOWN and (what, who) not in self._until:
            self._forget(now)
        self._until[what, who] = until + limit.each

    def change_limits(self, limits: Mapping[str, RateLimit]) -> None:
        """Use other limits from now on; what was tried before still counts."""
        self._limits = limits

    def __len__(self) -> int:
        """How many are known."""
        return len(self._until)

    def _forget(self, now: float) -> None:
        """Make room: for all whose tries are over, and for a tenth at least."""
        order = sorted(self._until, key=self._until.__getitem__)
        few = len(order) // 10
        for number, key in enumerate(order):
            if number >= few and self._until[key] > now:
                break
            del self._until[key]


def neighbours(host: str) -> str:
    """A host as it is counted: IPv6 gives everyone as many addresses as they like, so a whole /64 is one."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ip_network((address, 64), strict=False))
    return str(address)
