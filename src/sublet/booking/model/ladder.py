"""Amounts for which it is known which nodes have them free."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from sublet.booking.model.timeline import FIELDS, Levels, unpack


def bits(mask: int) -> Iterator[int]:
    """The positions of the ones, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Ladder:
    """The amounts for which it is known which nodes have them free: powers of two and the nodes' own sizes.

    Each rung is a row of bitmaps; a node that has some amount free stands on all rungs up to it.
    """

    def __init__(self, capacities: Sequence[int]) -> None:
        """Rungs for the packed capacities that there are."""
        self.rungs = [_rungs({unpack(capacity)[field] for capacity in capacities}) for field in range(FIELDS)]
        self.offsets = [sum(map(len, self.rungs[:field])) for field in range(FIELDS)]
        self.count = sum(len(rungs) for rungs in self.rungs) + 1
        self.sound = 1 << self.count - 1  # the last row, above all others: of no resource is more booked than there is

    def rows(self, need: int) -> tuple[list[int], list[int]] | None:
        """The rows whose nodes may have the need free, and those whose nodes surely have; None if no node ever has."""
        may, sure = [], []
        for rungs, offset, amount in zip(self.rungs, self.offsets, unpack(need), strict=True):
            if amount:
                at = bisect_left(rungs, amount)
                if at == len(rungs):
                    return None
                sure.append(offset + at)
                if rungs[at] == amount:
                    may.append(offset + at)
                elif at:
                    may.append(offset + at - 1)
        return may, sure

    def above(self, field: int, need: int) -> range:
        """The rows of one resource for more than is needed, lowest first."""
        rungs, offset = self.rungs[field], self.offsets[field]
        return range(offset + bisect_right(rungs, unpack(need)[field]), offset + len(rungs))


class FreeAmount(Levels):
    """The rank of a node's step is a mask of the rows that the node stands on."""

    def __init__(self, ladder: Ladder, capacity: int) -> None:
        """For nodes of one capacity."""
        super().__init__()
        self._ladder = ladder
        self._capacity = unpack(capacity)

    def rank(self, used: int) -> int:
        """The rows on which there is still as much free; of a node that has more booked than it has, nothing is."""
        free = [has - taken for has, taken in zip(self._capacity, unpack(used), strict=True)]
        if min(free) < 0:
            return 0
        rows = self._ladder.sound
        for rungs, offset, amount in zip(self._ladder.rungs, self._ladder.offsets, free, strict=True):
            rows |= ((1 << bisect_right(rungs, amount)) - 1) << offset
        return rows


def _rungs(sizes: set[int]) -> list[int]:
    """Powers of two, the small ones further apart, and the largest sizes that there are."""
    top = max(sizes, default=0).bit_length()
    powers = {1 << top - down for down in (1, 2, 3, 4, 5, 6, 8, 10) if down <= top}
    return sorted(powers | set(sorted(sizes - {0})[-8:]))
