"""What is taken of a platform's pledges over time: one bound for each set of pledges, for all amounts at once.

A booking counts in a bound with those of its amounts that may draw on nothing outside the set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sublet.booking.model.holds import most
from sublet.booking.model.offer import Take
from sublet.booking.model.pledge import MARK, OPEN, find_sources, list_sets, storage_pool
from sublet.booking.model.pledged import AMOUNTS, OFF, ON, STORAGE, capacity_of, find_scheduled, sizes_of
from sublet.booking.model.shape import Shape
from sublet.booking.model.timeline import MOST, Timeline, micros, pack, unpack

Mask = tuple[bool, ...]  # which amounts (cores, memory, GPUs) of a pool a bound applies to
Bound = tuple[Timeline, Mask]
EVERYTHING = pack(MOST, MOST, MOST, MOST)
ALL: Mask = (True, True, True)
FIRST: Mask = (True, False, False)  # storage is a single amount


class PledgeBounds:
    """The bounds of a platform's pledges, and which of them apply to a pool."""

    def __init__(self, pools: Mapping[str, int]) -> None:
        """Build the bounds from the pools of pledges among a calendar's pools."""
        self._sizes = {amount: sizes_of(pools, amount) for amount in AMOUNTS}
        self._stored = sizes_of(pools, STORAGE)
        self._scheduled = find_scheduled(pools)
        names = {name: None for sizes in (*self._sizes.values(), self._stored) for name in sizes}
        of_nodes = {name: None for sizes in self._sizes.values() for name in sizes}
        self._bounds = {
            some: Timeline(pack(*(capacity_of(some, sizes, self._scheduled) for sizes in self._sizes.values())))
            for some in list_sets(tuple(of_nodes))
        }
        self._storage_bounds = {
            some: Timeline(pack(capacity_of(some, self._stored, frozenset())))
            for some in (list_sets(tuple(names)) if self._stored else ())
        }
        self._known: dict[str, tuple[Bound, ...]] = {}

    def list_scheduled(self) -> dict[str, tuple[Timeline, ...]]:
        """Return the bounds that scheduled pledges take from: open sets while in force, their own sets while not."""
        pools: dict[str, tuple[Timeline, ...]] = {}
        for name in self._scheduled:
            pools[f"{ON}{name}"] = tuple(
                line for some, line in self._bounds.items() if OPEN in some and name not in some
            )
            pools[f"{OFF}{name}"] = tuple(
                line for some, line in self._bounds.items() if OPEN not in some and name in some
            )
        return pools

    def list_counted(self) -> dict[str, Timeline]:
        """Return the pools of cores that were drawn on, each with a timeline that only counts."""
        return {name: bounds[0][0] for name, bounds in self._known.items() if name.startswith(MARK)}

    def list_parts(self, take: Take) -> list[tuple[Timeline, int]]:
        """Return the timelines in which a take is booked, and how much of it in each."""
        amounts = (take.size, take.memory, take.gpus)
        return [(line, _pack(amounts, mask)) for line, mask in self._find(take.where)]

    def list_needs(self, pool: str, whole: Shape) -> list[tuple[Timeline, int]]:
        """Return the timelines that must have room for these amounts in a pool, and how much in each."""
        amounts = (whole.cores, whole.memory, whole.gpus)
        return [(line, _pack(amounts, mask)) for line, mask in self._find(pool)[1:]]

    def list_storage(self, pool: str) -> list[Timeline]:
        """Return the bounds on the storage of a booking in a pool."""
        return [line for line, _ in self._find(storage_pool(pool))[1:]] if self._storage_bounds else []

    def room(self, pool: str, start: int, end: int) -> Shape:
        """Return the most that a booking in a pool could have throughout a time."""
        least = [MOST, MOST, MOST]
        for line, mask in self._find(pool)[1:] if pool else ():
            free = zip(unpack(line.capacity), unpack(line.peak(start, end)), strict=True)
            for place, (has, used) in enumerate(free):
                if place < len(mask) and mask[place]:
                    least[place] = min(least[place], max(has - used, 0))
        return Shape(*least)

    def sum_drawn(self, takes: Sequence[Take]) -> list[tuple[Timeline, int, int, int]]:
        """Return what takes of pledges use of each timeline; of several at a moment, the largest counts."""
        lines: dict[Timeline, list[Take]] = {}
        for take in takes:
            for line, mask in self._find(take.where):
                lines.setdefault(line, []).append(_mask(take, mask))
        return [
            (line, micros(step.start), micros(step.end), pack(step.size, step.memory, step.gpus))
            for line, some in lines.items()
            for step in most(some)
        ]

    def _find(self, pool: str) -> tuple[Bound, ...]:
        """Return the timelines of a pool: one that only counts, then every bound that applies to it."""
        known = self._known.get(pool)
        if known is None:
            known = self._known[pool] = ((Timeline(EVERYTHING), ALL), *self._find_bounds(pool))
        return known

    def _find_bounds(self, pool: str) -> list[Bound]:
        if not pool.startswith(MARK):
            own = find_sources(f"{MARK}{pool.partition(':')[2]}", self._stored)
            return [(line, FIRST) for some, line in self._storage_bounds.items() if own <= some]
        sources = [find_sources(pool, sizes) if sizes else None for sizes in self._sizes.values()]
        masks = {some: tuple(own is not None and own <= some for own in sources) for some in self._bounds}
        return [(line, masks[some]) for some, line in self._bounds.items() if any(masks[some])]


def _pack(amounts: tuple[int, int, int], mask: Mask) -> int:
    first, second, third = (amount if is_held else 0 for amount, is_held in zip(amounts, mask, strict=True))
    return pack(first, second, third)


def _mask(take: Take, mask: Mask) -> Take:
    if mask == ALL:
        return take
    return replace(
        take, size=take.size if mask[0] else 0, memory=take.memory if mask[1] else 0, gpus=take.gpus if mask[2] else 0
    )
