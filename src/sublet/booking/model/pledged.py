"""What is pledged of a platform besides cores: memory, GPUs and storage; and when, if not always.

Each amount has its own bounds, as cores have. A pledge that doesn't state an amount draws on the open part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from sublet.booking.model.offer import Take
from sublet.booking.model.pledge import OPEN, SCHEDULED, find_sources, pool_of
from sublet.booking.model.schedule import Schedule, off_hours
from sublet.booking.model.shape import Shape
from sublet.booking.model.timeline import MOST

AMOUNTS = ("cores", "memory", "gpus")  # taken from nodes, for the time of a session
STORAGE = "storage"
MARKS = {
    "cores": "pledge:",
    "memory": "pledge@memory:",
    "gpus": "pledge@gpus:",
    STORAGE: "pledge@storage:",
}
ON, OFF = "pledge-on:", "pledge-off:"  # prefixes of what is taken while a pledge is in force, and while it is not
Sizes = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class AddedPledge:
    """A pledge that an operator added to those of the settings."""

    platform: str
    name: str
    settings: Mapping[str, object]  # in the form of a platform's settings
    by: str = ""  # who changed it last


@dataclass(frozen=True, slots=True)
class Pledged:
    """What is pledged under one name; an amount that is None is not pledged."""

    cores: int | None = None
    memory: int | None = None  # bytes
    gpus: int | None = None
    storage: int | None = None  # bytes
    when: Schedule | None = None  # None: always

    def amount(self, name: str) -> int | None:
        """Return how much of an amount is pledged, or None."""
        size: int | None = getattr(self, name)
        return size


def pools_of_all(pledges: Mapping[str, Pledged], there: Mapping[str, int]) -> dict[str, int]:
    """Return the pools of what is pledged and open of each amount; `there` is what the platform has in all."""
    pools: dict[str, int] = {}
    for amount, mark in MARKS.items() if pledges else ():
        stated = {name: size for name, pledge in pledges.items() if (size := pledge.amount(amount)) is not None}
        if stated or amount == "cores":
            rest = max(there.get(amount, 0) - sum(stated.values()), 0)
            pools |= {f"{mark}{name}": size for name, size in {**stated, OPEN: rest}.items()}
    return pools | {f"{SCHEDULED}{name}": 1 for name, pledge in pledges.items() if pledge.when}


def sizes_of(pools: Mapping[str, int], amount: str) -> dict[str, int]:
    """Return what is pledged and open of an amount in a calendar's pools; empty if nothing of it is pledged."""
    mark = MARKS[amount]
    return {pool.removeprefix(mark): size for pool, size in pools.items() if pool.startswith(mark)}


def find_scheduled(pools: Iterable[str]) -> frozenset[str]:
    """Return the pledges that are not always in force."""
    return frozenset(pool.removeprefix(SCHEDULED) for pool in pools if pool.startswith(SCHEDULED))


def most_of(names: Iterable[str], pools: Mapping[str, int]) -> Shape:
    """Return the most that a booking on these pledges could ever have, over all nodes."""
    pool, scheduled = pool_of(names), find_scheduled(pools)

    def most(amount: str) -> int:
        sizes = sizes_of(pools, amount)
        return capacity_of(find_sources(pool, sizes), sizes, scheduled) if sizes and pool else MOST

    return Shape(*(most(amount) for amount in AMOUNTS))


def capacity_of(some: frozenset[str], sizes: Sizes, scheduled: frozenset[str]) -> int:
    """Return the most that a set of pledges ever has of an amount; a pledge is open while it is not in force."""
    if not sizes:
        return MOST
    more = scheduled - some if OPEN in some else frozenset()
    return sum(sizes.get(name, 0) for name in some | more)


def list_schedule_takes(pledges: Mapping[str, Pledged], now: datetime) -> Iterator[Take]:
    """Yield what is taken from sets of pledges because some are in force only at times, from this day on."""
    for name, pledge in pledges.items():
        if pledge.when is None:
            continue
        sizes = {"size": pledge.cores or 0, "memory": pledge.memory or 0, "gpus": pledge.gpus or 0}
        for mark, hours in ((ON, pledge.when.hours(now)), (OFF, off_hours(pledge.when, now))):
            for start, end in hours:
                yield Take(f"{mark}{name}", start, end, pool=True, **sizes)
