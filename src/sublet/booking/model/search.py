"""The earliest time at which enough nodes have room: from chunk to chunk of the index, then exactly."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import partial, reduce
from itertools import accumulate
from operator import and_

from sublet.booking.model.index import Index, Rows, Spot
from sublet.booking.model.ladder import bits
from sublet.booking.model.timeline import BEGINNING, END

NOTHING = Rows([], [], 0, 0, range(0), range(0))
MANY = 16  # nodes; when fewer are wanted, a block hardly ever has too few throughout
AHEAD = 16  # how far ahead a node is checked, in lengths of the current chunk


class Search:
    """A search for so many nodes that each have a need free for a span.

    The index tells which nodes surely have room and which may have it; only the latter are checked one by one.
    """

    def __init__(self, index: Index, need: int, count: int, span: int) -> None:
        """Prepare a search of an index for `count` nodes with a packed need."""
        self._index, self._need, self._count, self._span = index, need, count, span
        known = index.rows_for(need) if count <= len(index.lines) else None
        self.possible = known is not None
        self._may, self._sure, self._rank, self._able, self._gpus, self._cores = known or NOTHING
        self._known: dict[int, int] = {}  # node → a time before which it has no room
        self._vague: set[int] = set()  # nodes that may have no room at that time either
        self._out = 0  # nodes that are known to have no room yet
        self._soonest = END  # when the first of those may have room

    def find(self, start: int, end: int) -> tuple[int, int] | None:
        """Return the earliest time in [start, end) and a mask of nodes, or None; later calls may not start earlier."""
        index, count = self._index, self._count
        low = start
        if start < end:
            sure = self._surely(start)
            if sure.bit_count() >= count:
                return start, self._best(sure, start)
        while low < end:
            block, chunk = index.chunk(low)
            high = min(index.end(block, chunk), end)
            if self._soonest < high:
                self._recall(high)
            stop = index.chunk(low + self._span)
            core, obstacle = self._throughout((block, chunk + 1), stop)
            if obstacle is not None:
                low = min(self._past_full_blocks(*obstacle), self._soonest)
                continue
            if core.bit_count() < count:  # too many are known to have no room yet
                low = self._soonest
                continue
            may = core & self._at_times(block, chunk)
            if stop != (block, chunk):
                may &= self._at_times(*index.chunk(low + self._span - 1))
            if may.bit_count() >= count:
                slot = self._within(low, high, may, self._surely(low))
                if slot is not None:
                    return slot
            low = high
        return None

    def _surely(self, time: int) -> int:
        """Return the nodes that have room from a time on according to the index alone."""
        last, upto = self._index.chunk(time + self._span - 1)
        return self._over(self._sure, self._index.chunk(time), (last, upto + 1))

    def _at_times(self, block: int, chunk: int) -> int:
        """Return the nodes that may have the need free at some moment of a chunk."""
        home = self._index.blocks[block]
        return reduce(and_, (home.row(at)[chunk] for at in self._may), self._index.all) | home.inside[chunk]

    def _recall(self, time: int) -> None:
        """Exclude only the nodes that are known to have no room before a time."""
        self._out, self._soonest = 0, END
        for node, first in self._known.items():
            if first >= time:
                self._out |= 1 << node
                self._soonest = min(self._soonest, first)

    def _over(self, rows: list[int], first: Spot, stop: Spot) -> int:
        """Return the nodes that stand on all these rows in every chunk from `first` to before `stop`."""
        nodes = self._index.all
        if first >= stop:
            return nodes
        (block, chunk), (last, upto) = first, stop
        blocks = self._index.blocks
        for at in rows:
            if block == last:
                nodes = reduce(and_, blocks[block].row(at)[chunk:upto], nodes)
                continue
            nodes = reduce(and_, blocks[block].row(at)[chunk:], nodes)
            for between in range(block + 1, last):
                nodes &= blocks[between].whole(at)
            nodes = reduce(and_, blocks[last].row(at)[:upto], nodes)
        return nodes

    def _throughout(self, first: Spot, stop: Spot) -> tuple[int, Spot | None]:
        """Return the nodes that may have room from `first` to before `stop`, and an obstacle if they are too few.

        The obstacle is the last chunk from which on there are too few nodes, so no start before it will do.
        """
        nodes = self._able & ~self._out
        if first >= stop or nodes.bit_count() < self._count:
            return nodes, None
        block, upto = stop
        while block >= first[0]:
            home = self._index.blocks[block]
            chunk = first[1] if block == first[0] else 0
            there = nodes
            for at in self._may:
                if chunk == 0 and upto == len(home.starts):
                    there &= home.whole(at)
                else:
                    there = reduce(and_, home.row(at)[chunk:upto], there)
            if there.bit_count() < self._count:
                rows = [reversed(home.row(at)[chunk:upto]) for at in self._may]
                masks = list(accumulate(reduce(partial(map, and_), rows), and_, initial=nodes))
                back = bisect_left(masks, True, key=lambda mask: mask.bit_count() < self._count)
                return nodes, (block, upto - back)
            nodes = there
            block -= 1
            upto = len(self._index.blocks[block].starts)
        return nodes, None

    def _past_full_blocks(self, block: int, chunk: int) -> int:
        """Return the start of a chunk, or of the next block that may have enough nodes at any one time."""
        blocks = self._index.blocks
        while self._count >= MANY and any(blocks[block].peak(at) < self._count for at in self._may):
            block, chunk = block + 1, 0
            if block == len(blocks):
                return END
        return blocks[block].starts[chunk]

    def _within(self, low: int, high: int, may: int, sure: int) -> tuple[int, int] | None:
        """Find the earliest time in [low, high), all in one chunk, at which enough of the nodes have room."""
        missing = self._count - sure.bit_count()
        if missing <= 0:
            return low, self._best(sure, low)
        firsts: list[tuple[int, int]] = []
        spare = (may & ~sure).bit_count() - missing
        for node in bits(may & ~sure):
            first = self._first(node, low, high)
            if first >= high:
                spare -= 1
                if spare < 0:
                    return None
            elif first == low:
                sure |= 1 << node
                missing -= 1
                if not missing:
                    return low, sure
            else:
                firsts.append((first, node))
        firsts += [(low, node) for node in bits(sure)]
        while len(firsts) >= self._count:
            firsts.sort()
            low = firsts[self._count - 1][0]
            again = [(first if first >= low else self._first(node, low, high), node) for first, node in firsts]
            firsts = [(first, node) for first, node in again if first < high]
            ready = [node for first, node in firsts if first == low]
            if len(ready) >= self._count:
                return low, sum(1 << node for node in ready[: self._count])
        return None

    def _first(self, node: int, low: int, high: int) -> int:
        """Return a time before which a node has no room, exact below `high`; results are cached."""
        line = self._index.lines[node]
        if not line.reaches(low, high, self._rank):
            return high
        first = self._known.get(node, BEGINNING)
        if first < low or (first < high and node in self._vague):
            limit = high + self._span + AHEAD * (high - low)
            time = line.first(max(low, first), self._span, self._need, limit)
            if time is None:
                first = limit
                self._vague.add(node)
            else:
                first = time
                self._vague.discard(node)
            self._known[node] = first
            if first >= high:
                self._out |= 1 << node
                self._soonest = min(self._soonest, first)
        return first

    def _best(self, nodes: int, time: int) -> int:
        """Choose as many nodes as are wanted: those with the fewest spare GPUs, then cores; of equals the smallest."""
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
        """Yield the nodes in groups, those with the least to spare first."""
        at, chunk = self._index.chunk(time)
        block = self._index.blocks[at]
        for gpus in (*self._gpus, None):
            group = nodes if gpus is None else nodes & ~block.row(gpus)[chunk]
            if not group:
                continue
            nodes &= ~group
            for cores in (*self._cores, None):
                tier = group if cores is None else group & ~block.row(cores)[chunk]
                if tier:
                    group ^= tier
                    yield tier
