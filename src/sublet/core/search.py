"""The earliest time at which enough nodes have room: from chunk to chunk of the index, then exactly."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import reduce
from itertools import accumulate
from operator import and_

from sublet.core.index import Index
from sublet.core.ladder import bits


class Search:
    """So many nodes that each have a need free for a span.

    The index tells nodes that surely have room from those that may have it; only the latter are looked at one by one.
    """

    def __init__(self, index: Index, need: int, count: int, span: int) -> None:
        """Ask an index for a packed need."""
        self._index, self._need, self._count, self._span = index, need, count, span
        rows = index.ladder.rows(need) if count <= len(index.lines) else None
        self.possible = rows is not None
        self._may, self._sure = rows or ([], [])

    def find(self, start: int, end: int) -> tuple[int, int] | None:
        """The earliest time in [start, end) and the nodes, as a mask."""
        index, count = self._index, self._count
        low = start
        while low < end:
            block, chunk = index.chunk(low)
            stop = index.chunk(low + self._span)
            after = (block, chunk + 1)
            core = self._over(self._may, after, stop)
            if core.bit_count() < count:
                at, chunk = self._last_obstacle(after, stop)
                low = index.blocks[at].starts[chunk]
                continue
            high = min(index.end(block, chunk), end)
            may = core & (self._over(self._may, (block, chunk), after) | index.blocks[block].inside[chunk])
            if may.bit_count() >= count:
                last, upto = index.chunk(low + self._span - 1)
                sure = self._over(self._sure, (block, chunk), (last, upto + 1))
                found = self._within(low, high, may, sure)
                if found is not None:
                    return found
            low = high
        return None

    def _over(self, rows: list[int], first: tuple[int, int], stop: tuple[int, int]) -> int:
        """The nodes that stand on all the rows in every chunk from the first until before the last."""
        found = self._index.all
        if first >= stop:
            return found
        (block, chunk), (last, upto) = first, stop
        blocks = self._index.blocks
        for at in rows:
            if block == last:
                found = reduce(and_, blocks[block].row(at)[chunk:upto], found)
                continue
            found = reduce(and_, blocks[block].row(at)[chunk:], found)
            for between in range(block + 1, last):
                found &= blocks[between].whole(at)
            found = reduce(and_, blocks[last].row(at)[:upto], found)
        return found

    def _last_obstacle(self, first: tuple[int, int], stop: tuple[int, int]) -> tuple[int, int]:
        """The last chunk from which on, until `stop`, there are too few nodes: no start before it will do."""
        found = self._index.all
        block, upto = stop
        while True:
            home = self._index.blocks[block]
            chunk = first[1] if block == first[0] else 0
            rows = [reversed(home.row(at)[chunk:upto]) for at in self._may]
            together = reduce(lambda one, other: map(and_, one, other), rows)
            masks = list(accumulate(together, and_, initial=found))
            found = masks[-1]
            if found.bit_count() < self._count:
                back = bisect_left(masks, True, key=lambda mask: mask.bit_count() < self._count)
                return block, upto - back
            block -= 1
            upto = len(self._index.blocks[block].starts)

    def _within(self, low: int, high: int, may: int, sure: int) -> tuple[int, int] | None:
        """The earliest time in [low, high), all in one chunk, at which enough of the nodes have room."""
        missing = self._count - sure.bit_count()
        if missing <= 0:
            return low, self._best(sure, low)
        firsts: list[tuple[int, int]] = []
        for node in bits(may & ~sure):
            first = self._first(node, low, high)
            if first == low:
                sure |= 1 << node
                missing -= 1
                if not missing:
                    return low, sure
            elif first is not None:
                firsts.append((first, node))
        firsts += [(low, node) for node in bits(sure)]
        while len(firsts) >= self._count:
            firsts.sort()
            low = firsts[self._count - 1][0]
            again = [(first if first >= low else self._first(node, low, high), node) for first, node in firsts]
            firsts = [(first, node) for first, node in again if first is not None]
            ready = [node for first, node in firsts if first == low]
            if len(ready) >= self._count:
                return low, sum(1 << node for node in ready[: self._count])
        return None

    def _first(self, node: int, low: int, high: int) -> int | None:
        return self._index.lines[node].first(low, self._span, self._need, high)

    def _best(self, nodes: int, time: int) -> int:
        """As many as are wanted: those with the least to spare around a time, GPUs before cores; then the smallest."""
        chosen, missing = 0, self._count - nodes.bit_count()
        if not missing:
            return nodes
        missing = self._count
        for tier in self._tiers(nodes, time):
            if tier.bit_count() >= missing:
                for node in bits(tier):
                    if not missing:
                        break
                    chosen |= 1 << node
                    missing -= 1
                break
            chosen |= tier
            missing -= tier.bit_count()
        return chosen

    def _tiers(self, nodes: int, time: int) -> Iterator[int]:
        """The nodes in groups, those with the least to spare first."""
        at, chunk = self._index.chunk(time)
        block = self._index.blocks[at]
        by_gpus, by_cores = (self._index.ladder.above(field, self._need) for field in (2, 0))
        for gpus in (*by_gpus, None):
            group = nodes if gpus is None else nodes & ~block.row(gpus)[chunk]
            nodes &= ~group
            for cores in (*by_cores, None):
                tier = group if cores is None else group & ~block.row(cores)[chunk]
                if tier:
                    group ^= tier
                    yield tier
