"""The amounts for which the calendar's index knows which nodes have them free."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from sublet.booking.model.timeline import FIELDS, Levels, unpack


def bits(mask: int) -> Iterator[int]:
    """Yield the positions of the ones in a mask, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


class Ladder:
    """The amounts for which the index knows which nodes have them free: powers of two and the nodes' own sizes.

    Each rung is a row of bitmaps; a node stands on all rungs up to the amount that it has free.
    """

    def __init__(self, capacities: Sequence[int]) -> None:
        """Build the rungs for these packed capacities."""
        self.rungs = [_rungs({unpack(capacity)[field] for capacity in capacities}) for field in range(FIELDS)]
        self.offsets = [sum(map(len, self.rungs[:field])) for field in range(FIELDS)]
        self.count = sum(len(rungs) for rungs in self.rungs) + 1
        self.sound = 1 << self.count - 1  # the last and highest row: nothing on the node is overbooked

    def rows(self, need: int) -> tuple[list[int], list[int]] | None:
        """Return the rows whose nodes may have the need free, and whose nodes surely do; None if no node ever does."""
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
        """Return the rows of one resource above the need, lowest first."""
        rungs, offset = self.rungs[field], self.offsets[field]
        return range(offset + bisect_right(rungs, unpack(need)[field]), offset + len(rungs))


class FreeAmount(Levels):
    """Levels whose rank is a mask of the rows that a node stands on."""

    def __init__(self, ladder: Ladder, capacity: int) -> None:
        """Compute ranks for nodes of one packed capacity."""
        super().__init__()
        self._ladder = ladder
        self._capacity = unpack(capacity)

    def rank(self, used: int) -> int:
        """Return the rows up to what is still free; none for a node that is overbooked."""
        free = [has - taken for has, taken in zip(self._capacity, unpack(used), strict=True)]
        if min(free) < 0:
            return 0
        rows = self._ladder.sound
        for rungs, offset, amount in zip(self._ladder.rungs, self._ladder.offsets, free, strict=True):
            rows |= ((1 << bisect_right(rungs, amount)) - 1) << offset
        return rows


def _rungs(sizes: set[int]) -> list[int]:
    """Return powers of two, the small ones further apart, and the largest sizes that exist."""
    top = max(sizes, default=0).bit_length()
    powers = {1 << top - down for down in (1, 2, 3, 4, 5, 6, 8, 10) if down <= top}
    return sorted(powers | set(sorted(sizes - {0})[-8:]))
