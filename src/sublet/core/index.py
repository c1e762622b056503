"""Which nodes have room for how long: bitmaps over the nodes, for chunks of time, so that few nodes are looked at."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import repeat
from operator import and_, xor

from sublet.core.ladder import Ladder, Standing, bits
from sublet.core.timeline import BEGINNING, END, Timeline

CHUNK = 64  # changes of any node inside one chunk of time, before it is cut in two
BLOCK = 64  # chunks in one block, before it is cut in two


class Block:
    """Neighbouring chunks of time, and for each row the nodes that stand on it throughout each chunk."""

    __slots__ = ("changes", "edges", "inside", "least", "pending", "rows", "starts", "touched")

    def __init__(self, starts: list[int], rows: list[list[int]]) -> None:
        """Chunks that begin at these times, without any change in them yet."""
        self.starts = starts
        self.inside = [0] * len(starts)  # nodes that change strictly inside the chunk
        self.edges = [0] * len(starts)  # nodes that change at the very start of the chunk
        self.changes = [0] * len(starts)  # how many changes there are strictly inside
        self.rows = rows
        self.pending = [0] * len(rows)  # nodes to be flipped in every chunk of a row, once somebody looks
        self.least: list[int | None] = [None] * len(rows)  # nodes that stand on the row throughout the block
        self.touched = 0  # nodes that may change after the start of the block, and before its end

    def row(self, at: int) -> list[int]:
        """A row as it is now, chunk by chunk."""
        if self.pending[at]:
            self.rows[at] = list(map(xor, self.rows[at], repeat(self.pending[at])))
            self.pending[at] = 0
        return self.rows[at]

    def whole(self, at: int) -> int:
        """The nodes that stand on a row throughout the block."""
        least = self.least[at]
        if least is None:
            least = self.least[at] = reduce(and_, self.row(at))
        return least

    def flip(self, first: int, last: int, rows: int, nodes: int) -> None:
        """Flip nodes in some rows, from one chunk until before another."""
        if first == 0 and last == len(self.starts):
            for at in bits(rows):
                self.pending[at] ^= nodes
                self.least[at] = None
            return
        for at in bits(rows):
            row = self.row(at)
            row[first:last] = map(xor, row[first:last], repeat(nodes))
            self.least[at] = None

    def flip_all(self, rows: int, nodes: int) -> None:
        """Flip nodes that don't change inside the block, in some rows, throughout."""
        for at in bits(rows):
            self.pending[at] ^= nodes
            least = self.least[at]
            if least is not None:
                self.least[at] = least ^ nodes

    def retouch(self) -> None:
        """Work out anew which nodes change inside the block."""
        self.touched = 0
        for mask in (*self.inside, *self.edges[1:]):
            self.touched |= mask


class Index:
    """The nodes' timelines, and blocks of chunks of time over them that are always true to those."""

    def __init__(self, capacities: Sequence[int]) -> None:
        """Nodes of these packed capacities, with nothing taken."""
        self.lines = [Timeline(capacity) for capacity in capacities]
        self.ladder = Ladder(capacities)
        kinds = {capacity: Standing(self.ladder, capacity) for capacity in set(capacities)}
        self.standing = [kinds[capacity] for capacity in capacities]
        self.all = (1 << len(self.lines)) - 1
        idle = [0] * self.ladder.count
        for node, standing in enumerate(self.standing):
            for at in bits(standing[0]):
                idle[at] |= 1 << node
        self.blocks = [Block([BEGINNING], [[mask] for mask in idle])]
        self.firsts = [BEGINNING]  # when each block begins

    def chunk(self, time: int) -> tuple[int, int]:
        """The block and the chunk in it that a time lies in."""
        block = bisect_right(self.firsts, time) - 1
        return block, bisect_right(self.blocks[block].starts, time) - 1

    def end(self, block: int, chunk: int) -> int:
        """When a chunk ends."""
        starts = self.blocks[block].starts
        if chunk + 1 < len(starts):
            return starts[chunk + 1]
        return self.block_end(block)

    def block_end(self, block: int) -> int:
        """When a block ends."""
        return self.firsts[block + 1] if block + 1 < len(self.firsts) else END

    # -- changing ------------------------------------------------------------------------------------------------

    def add(self, start: int, end: int, amounts: Iterable[tuple[int, int]]) -> None:
        """Take (node, packed amount) pairs more, or less when negative, over [start, end)."""
        if start >= end:
            return
        flips: dict[tuple[int, int, int, int], int] = {}
        for node, amount in amounts:
            if amount:
                self._add(node, start, end, amount, flips)
        for (block, first, last, rows), nodes in flips.items():
            if last:
                self.blocks[block].flip(first, last, rows, nodes)
            else:
                self.blocks[block].flip_all(rows, nodes)
        for time in (start, end):
            self._tidy(time)

    def _add(self, node: int, start: int, end: int, amount: int, flips: dict[tuple[int, int, int, int], int]) -> None:
        line = self.lines[node]
        first, last, new_start, new_end = line.raise_by(start, end, amount)
        self._collect(node, start, end, amount, first, last, flips)
        used = line.used
        starts, ends = used[first - 1] != used[first], used[last - 1] != used[last]
        line.join(first, last)
        if starts == new_start:  # a change that is new and stays, or was there and is gone
            self._mark(node, start, starts)
        if ends == new_end:
            self._mark(node, end, ends)

    def _collect(
        self,
        node: int,
        start: int,
        end: int,
        amount: int,
        first: int,
        last: int,
        flips: dict[tuple[int, int, int, int], int],
    ) -> None:
        """Find the chunks in which the node now stands on other rows."""
        line, standing, bit = self.lines[node], self.standing[node], 1 << node
        times, used = line.times, line.used
        step = first
        block, chunk = self.chunk(start)
        while True:
            home = self.blocks[block]
            starts = home.starts
            over = self.block_end(block)
            if start <= starts[0] and over <= end and not home.touched & bit:
                while step + 1 < len(times) and times[step + 1] <= starts[0]:
                    step += 1
                rows = standing[used[step]] ^ standing[used[step] - amount]
                if rows:
                    spot = (block, 0, 0, rows)
                    flips[spot] = flips.get(spot, 0) ^ bit
            else:
                count = len(starts)
                while chunk < count and starts[chunk] < end:
                    begin = starts[chunk]
                    until = starts[chunk + 1] if chunk + 1 < count else over
                    while step < last - 1 and times[step + 1] <= begin:
                        step += 1
                    after = times[step + 1]
                    if times[step] <= begin and until <= after:
                        upto = count if over <= after else bisect_right(starts, after, chunk + 1) - 1
                        rows = standing[used[step]] ^ standing[used[step] - amount]
                    else:
                        upto = chunk + 1
                        rows = _difference(line, standing, begin, until, first, last, amount)
                    if rows:
                        spot = (block, chunk, upto, rows)
                        flips[spot] = flips.get(spot, 0) ^ bit
                    chunk = upto
            if over >= end:
                return
            block += 1
            chunk = 0

    def _mark(self, node: int, time: int, changes: bool) -> None:
        """Note that a node now changes at a time, or no longer."""
        at, chunk = self.chunk(time)
        block, bit = self.blocks[at], 1 << node
        begin = block.starts[chunk]
        if changes and time > block.starts[0]:
            block.touched |= bit
        if time == begin:
            block.edges[chunk] ^= bit
        elif changes:
            block.inside[chunk] |= bit
            block.changes[chunk] += 1
        else:
            block.changes[chunk] -= 1
            times = self.lines[node].times
            if bisect_right(times, begin) == bisect_left(times, self.end(at, chunk)):
                block.inside[chunk] &= ~bit

    # -- keeping chunks and blocks of a good size ----------------------------------------------------------------

    def _tidy(self, time: int) -> None:
        """Cut what has grown too large around a time, join what has become small."""
        at, chunk = self.chunk(time)
        block = self.blocks[at]
        if block.changes[chunk] > CHUNK:
            self._cut(block, chunk, self.end(at, chunk))
            if len(block.starts) > BLOCK:
                self._cut_block(at)
            return
        for left in (chunk, chunk - 1):
            if left >= 0 and left + 1 < len(block.starts):
                both = block.changes[left] + block.changes[left + 1] + block.edges[left + 1].bit_count()
                if both <= CHUNK // 4:
                    _join(block, left)
        for left in (at, at - 1):
            two = self.blocks[left : left + 2] if left >= 0 else []
            if len(two) == 2 and len(two[0].starts) + len(two[1].starts) <= BLOCK // 4:
                self._join_blocks(left)

    def _cut(self, block: Block, chunk: int, end: int) -> None:
        """Make two chunks of one, with as many changes in the one as in the other."""
        begin, inside = block.starts[chunk], block.inside[chunk]
        found: list[tuple[int, list[int]]] = []  # nodes and the times of their changes in this chunk
        for node in bits(inside):
            times = self.lines[node].times
            found.append((node, times[bisect_right(times, begin) : bisect_left(times, end)]))
        middle = sorted(time for _, times in found for time in times)[block.changes[chunk] // 2]
        left: dict[int, int] = {}  # rows → nodes that stand on them
        right: dict[int, int] = {}
        before = after = edge = changes = 0
        for node, times in found:
            bit = 1 << node
            line, standing = self.lines[node], self.standing[node]
            if times[0] < middle:
                before |= bit
                changes += bisect_left(times, middle)
            if times[-1] > middle:
                after |= bit
            if line.changes_at(middle):
                edge |= bit
            for half, rows in (
                (left, line.rows(begin, middle, standing)),
                (right, line.rows(middle, end, standing)),
            ):
                half[rows] = half.get(rows, 0) | bit
        for at in range(len(block.rows)):
            row = block.row(at)
            kept = row[chunk] & ~inside
            row[chunk : chunk + 1] = (_with(kept, left, at), _with(kept, right, at))
        block.starts.insert(chunk + 1, middle)
        block.inside[chunk : chunk + 1] = (before, after)
        block.edges.insert(chunk + 1, edge)
        block.changes[chunk : chunk + 1] = (changes, block.changes[chunk] - changes - edge.bit_count())

    def _cut_block(self, at: int) -> None:
        block = self.blocks[at]
        middle = len(block.starts) // 2
        rows = [block.row(row) for row in range(len(block.rows))]
        new = Block(block.starts[middle:], [row[middle:] for row in rows])
        new.inside, new.edges, new.changes = block.inside[middle:], block.edges[middle:], block.changes[middle:]
        for column in (block.starts, block.inside, block.edges, block.changes, *rows):
            del column[middle:]
        block.least = [None] * len(rows)
        block.retouch()
        new.retouch()
        self.blocks.insert(at + 1, new)
        self.firsts.insert(at + 1, new.starts[0])

    def _join_blocks(self, at: int) -> None:
        block, other = self.blocks[at], self.blocks.pop(at + 1)
        del self.firsts[at + 1]
        for row in range(len(block.rows)):
            block.row(row).extend(other.row(row))
        block.starts += other.starts
        block.inside += other.inside
        block.edges += other.edges
        block.changes += other.changes
        block.least = [None] * len(block.rows)
        block.retouch()


def _difference(line: Timeline, standing: Standing, begin: int, until: int, first: int, last: int, amount: int) -> int:
    """The rows on which a node stands throughout a chunk only before, or only after, those steps were raised."""
    times, used = line.times, line.used
    step = bisect_right(times, begin) - 1
    old = new = -1
    while step < len(times) and times[step] < until:
        now = standing[used[step]]
        new &= now
        old &= standing[used[step] - amount] if first <= step < last else now
        step += 1
    return old ^ new


def _with(kept: int, groups: dict[int, int], at: int) -> int:
    row = 1 << at
    for rows, nodes in groups.items():
        if rows & row:
            kept |= nodes
    return kept


def _join(block: Block, left: int) -> None:
    """Make one chunk of two neighbours."""
    right = left + 1
    for at in range(len(block.rows)):
        row = block.row(at)
        row[left : right + 1] = (row[left] & row[right],)
    block.inside[left : right + 1] = (block.inside[left] | block.inside[right] | block.edges[right],)
    both = block.changes[left] + block.changes[right] + block.edges[right].bit_count()
    block.changes[left : right + 1] = (both,)
    del block.starts[right], block.edges[right]
