"""Rate limits on what a person or host tries; beyond a limit, they are told how long to wait.

Tries are counted in this process only: several processes allow several times as many. Limits that must hold across all
of them (such as the tries of one code) are counted in the database, beside the thing that is tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from ipaddress import IPv6Address, ip_address, ip_network
from time import monotonic

from sublet.kernel.errors import TooMany
from sublet.kernel.rate_limits import RateLimit

MOST_KNOWN = 20_000  # callers; those with the fewest recent tries are forgotten first


class Throttle:
    """The recent tries of each caller, as one number each: the time at which they will no longer count."""

    def __init__(self, limits: Mapping[str, RateLimit], clock: Callable[[], float] = monotonic) -> None:
        """Start without any tries; `limits` are the operator's, by their names in the settings."""
        self._limits = limits
        self._clock = clock
        self._until: dict[tuple[str, str], float] = {}

    def spend(self, what: str, who: str, hint: str = "") -> None:
        """Count one try; raise TooMany, without counting it, if there were too many already."""
        limit, now = self._limits[what], self._clock()
        until = max(self._until.get((what, who), now), now)
        wait = until + limit.each - now - limit.per.total_seconds()
        if wait > 1e-6:  # less is a rounding error
            raise TooMany(hint=hint, seconds=math.ceil(wait))
        if len(self._until) >= MOST_KNOWN and (what, who) not in self._until:
            self._forget(now)
        self._until[what, who] = until + limit.each

    def change_limits(self, limits: Mapping[str, RateLimit]) -> None:
        """Use new limits from now on; earlier tries still count."""
        self._limits = limits

    def __len__(self) -> int:
        """Return how many callers are remembered."""
        return len(self._until)

    def _forget(self, now: float) -> None:
        """Forget all callers whose tries no longer count, and at least a tenth of all callers."""
        order = sorted(self._until, key=self._until.__getitem__)
        few = len(order) // 10
        for number, key in enumerate(order):
            if number >= few and self._until[key] > now:
                break
            del self._until[key]


def neighbours(host: str) -> str:
    """Return the address or network that a host is counted as: a whole /64 for IPv6, since one user can have it all."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ip_network((address, 64), strict=False))
    return str(address)
