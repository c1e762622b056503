"""Which storage pool each piece of booked storage goes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple

from sublet.booking.model.calendar import Calendar
from sublet.booking.model.offer import sum_pools
from sublet.booking.model.pledge import is_pledge
from sublet.booking.model.request import Window
from sublet.booking.model.shape import Shape

MOST_PLACEMENTS = 64  # the most placements that are tried, those in one pool first
MOST_LOOKS = 4096  # the most steps in the search for further placements


@dataclass(frozen=True, slots=True)
class Placement:
    """The pool of each piece of storage, and the total in each pool."""

    pools: Mapping[str, str]  # storage → pool
    totals: Mapping[str, int]  # pool → bytes


NOWHERE = Placement({}, {})


def sizes_of_pools(calendar: Calendar, names: Sequence[str] = ()) -> dict[str, int]:
    """Return the bytes of each storage pool of a calendar, the named ones first."""
    sizes = {name: size for name, size in calendar.pools.items() if not is_pledge(name)}
    return {name: sizes[name] for name in names if name in sizes} | sizes


def list_placements(
    sizes: Mapping[str, int], named: Mapping[str, str], pools: Mapping[str, int]
) -> tuple[Placement, ...]:
    """Return the ways to spread storage over empty pools, all in one pool first; empty if it fits nowhere.

    Storage that names a pool goes there.
    """
    if not sizes or not (pools or any(sizes.values())):
        return (NOWHERE,)
    found: dict[frozenset[tuple[str, str]], Placement] = {}
    together = ({name: named.get(name) or pool for name in sizes} for pool in pools)
    for placing in (*together, *islice(_spread(sizes, named, pools), MOST_PLACEMENTS)):
        totals = sum_pools(sizes, placing)
        if len(found) < MOST_PLACEMENTS and all(size <= pools.get(pool, -1) for pool, size in totals.items()):
            found.setdefault(frozenset(placing.items()), Placement(placing, totals))
    return tuple(found.values())


def _spread(sizes: Mapping[str, int], named: Mapping[str, str], pools: Mapping[str, int]) -> Iterator[dict[str, str]]:
    """Yield placements in which no pool gets more than it has, the largest pieces first; the search is bounded."""
    order = sorted(sizes, key=lambda name: (name not in named, -sizes[name]))
    looks = iter(range(MOST_LOOKS))

    def place(at: int, free: Mapping[str, int], placing: dict[str, str]) -> Iterator[dict[str, str]]:
        if at == len(order):
            yield placing
            return
        name = order[at]
        for pool in (named[name],) if named.get(name) else pools:
            if free.get(pool, -1) >= sizes[name] and next(looks, None) is not None:
                yield from place(at + 1, {**free, pool: free[pool] - sizes[name]}, placing | {name: pool})

    return place(0, pools, {})


class Spot(NamedTuple):
    """A start, the exact nodes that are free from then on, and the pools of the storage."""

    start: datetime
    nodes: tuple[str, ...]
    pools: Mapping[str, str]


def find_earliest(
    calendar: Calendar,
    placements: Sequence[Placement],
    shape: Shape,
    nodes: int,
    length: timedelta,
    windows: Sequence[Window],
    *,
    lead: timedelta,
    tail: timedelta,
    pledge: str,
) -> Spot | None:
    """Find the earliest start with storage in any pools that have room then; of equals, the first placement."""
    best: Spot | None = None
    soonest = min(window.start for window in windows)
    searched: set[frozenset[tuple[str, int]]] = set()
    for placement in placements:
        if (totals := frozenset(placement.totals.items())) in searched:
            continue
        searched.add(totals)
        slot = calendar.earliest(
            shape, nodes, length, windows, storage=placement.totals, lead=lead, tail=tail, pledge=pledge
        )
        if slot and (best is None or slot.start < best.start):
            best = Spot(slot.start, slot.nodes, placement.pools)
            if slot.start <= soonest:
                break
    return best
