"""How often someone may try something: beyond that they are told to wait, and for how long.

What is counted here is counted in this process alone: several processes let through several times as much. What must
hold across all of them (the tries of one code) is counted in the database, beside the thing that is tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv6Address, ip_address, ip_network
from time import monotonic

from sublet.errors import TooMany

MOST_KNOWN = 20_000  # of those who tried something; whoever tried the least is forgotten first


@dataclass(frozen=True, slots=True)
class Limit:
    """So many at once, and no more than so many in such a time."""

    most: int
    per: timedelta

    @property
    def each(self) -> float:
        """The seconds after which one more is allowed."""
        return self.per.total_seconds() / self.most


LIMITS: Mapping[str, Limit] = {
    "token": Limit(30, timedelta(minutes=1)),  # tokens that are not good, from one host
    "sign-in": Limit(30, timedelta(minutes=10)),  # beginnings of a sign-in, from one host or for one address
    "access": Limit(30, timedelta(hours=1)),  # requests for access, each of which is a mail, from one host
    "hook": Limit(30, timedelta(minutes=10)),  # tests of hooks, each of which calls someone, by one person
    "code": Limit(60, timedelta(minutes=10)),  # codes that are typed, from one host
    "refusal": Limit(30, timedelta(hours=1)),  # asks that the rules refused and that are written down, of one person
    "proposal": Limit(30, timedelta(hours=1)),  # repositories that one person has fetched
}


class Throttle:
    """Who has tried what, as one number each: when their tries will be forgotten."""

    def __init__(self, limits: Mapping[str, Limit] = LIMITS, clock: Callable[[], float] = monotonic) -> None:
        """Nobody has tried anything yet."""
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
