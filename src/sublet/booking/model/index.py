"""An index of free capacity: bitmaps of nodes for chunks of time, so that few nodes are checked one by one."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import repeat
from operator import and_, or_, xor
from typing import NamedTuple

from sublet.booking.model.ladder import FreeAmount, Ladder, bits
from sublet.booking.model.timeline import BEGINNING, END, Level, Timeline

KEPT = 1024  # amounts that are cached
ALL = -1  # as a last chunk: the whole block, in which the nodes don't change

Spot = tuple[int, int]  # a block, and a chunk in it
Spot3 = tuple[int, int, int]  # a block, a chunk in it, and the chunk to stop before
Flips = dict[tuple[int, int, int, int], int]  # block, first chunk, last chunk, rows → nodes


@lru_cache(maxsize=4096)
def _places(rows: int) -> tuple[int, ...]:
    return tuple(bits(rows))


class Block:
    """Neighbouring chunks of time and, for each row, the nodes that stand on it throughout each chunk."""

    __slots__ = ("changes", "edges", "inside", "least", "peaks", "pending", "rows", "starts")

    def __init__(self, starts: list[int], rows: list[list[int]]) -> None:
        """Create chunks that begin at these times, without any change in them yet."""
        self.starts = starts
        self.inside = [0] * len(starts)  # nodes that change strictly inside the chunk
        self.edges = [0] * len(starts)  # nodes that change at the very start of the chunk
        self.changes = [0] * len(starts)  # how many changes there are strictly inside
        self.rows = rows
        self.pending = [0] * len(rows)  # nodes to flip in every chunk of a row when it is read
        self.least: list[int | None] = [None] * len(rows)  # nodes that stand on the row throughout the block
        self.peaks: dict[int, int] = {}  # row → the most nodes that may stand on the row at any one time

    def row(self, at: int) -> list[int]:
        """Return a row, chunk by chunk, with pending flips applied."""
        if self.pending[at]:
            self.rows[at] = list(map(xor, self.rows[at], repeat(self.pending[at])))
            self.pending[at] = 0
        return self.rows[at]

    def whole(self, at: int) -> int:
        """Return the nodes that stand on a row throughout the block."""
        least = self.least[at]
        if least is None:
            least = self.least[at] = reduce(and_, self.row(at))
        return least

    def peak(self, at: int) -> int:
        """Return the most nodes that may stand on a row at any one time of the block."""
        peak = self.peaks.get(at)
        if peak is None:
            masks = map(or_, self.row(at), self.inside)
            peak = self.peaks[at] = max(map(int.bit_count, masks))
        return peak

    def flip(self, first: int, last: int, rows: Sequence[int], nodes: int) -> None:
        """Flip nodes in some rows, from the chunk `first` to before `last`."""
        for at in rows:
            self.least[at] = None
            row = self.rows[at]  # pending flips commute with this one
            if last == first + 1:
                row[first] ^= nodes
            else:
                row[first:last] = map(xor, row[first:last], repeat(nodes))

    def flip_all(self, rows: Sequence[int], nodes: int) -> None:
        """Flip nodes that don't change inside the block, in some rows, throughout."""
        for at in rows:
            self.pending[at] ^= nodes
            least = self.least[at]
            if least is not None:
                self.least[at] = least ^ nodes


class Rows(NamedTuple):
    """The rows and nodes that matter for a packed amount."""

    may: list[int]  # the rows whose nodes may have the amount free
    sure: list[int]  # the rows whose nodes surely have it free
    rank: int  # a mask of the `may` rows: a step without them has no room
    able: int  # the nodes that are large enough
    gpus: range  # the rows for more GPUs than are needed, lowest first
    cores: range  # the same for cores


class Index:
    """The nodes' timelines, with blocks and chunks of time over them that are always kept consistent."""

    def __init__(self, capacities: Sequence[int], grain: int) -> None:
        """Start with nodes of these packed capacities, with nothing taken."""
        self._chunk = grain  # the most changes of any node inside a chunk before it is split
        self._block = max(4, grain // 16)  # the most chunks in a block before it is split
        self.ladder = Ladder(capacities)
        kinds = {capacity: FreeAmount(self.ladder, capacity) for capacity in set(capacities)}
        self.lines = [
            Timeline(capacity, kinds[capacity]) for capacity in capacities
        ]  # a step's rank is the mask of rows it stands on
        self.all = (1 << len(self.lines)) - 1
        self.idle = idle = [0] * self.ladder.count  # the nodes on each row while nothing is taken
        for node, line in enumerate(self.lines):
            for at in bits(line.levels[0][0]):
                idle[at] |= 1 << node
        self.blocks = [Block([BEGINNING], [[mask] for mask in idle])]
        self.firsts = [BEGINNING]  # when each block begins
        self._known: dict[int, Rows | None] = {}  # a cache: amount → its rows

    def rows_for(self, amount: int) -> Rows | None:
        """Return the rows for a packed amount, or None if no node ever has it; cached, because requests repeat."""
        if amount not in self._known:
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[amount] = self._find_rows(amount)
        return self._known[amount]

    def _find_rows(self, amount: int) -> Rows | None:
        if (rows := self.ladder.rows(amount)) is None:
            return None
        may, sure = rows
        able = reduce(and_, (self.idle[at] for at in may), self.all)
        gpus, cores = (self.ladder.above(field, amount) for field in (2, 0))
        return Rows(may, sure, sum(1 << at for at in may), able, gpus, cores)

    def chunk(self, time: int) -> tuple[int, int]:
        """Return the block, and the chunk in it, that contain a time."""
        block = bisect_right(self.firsts, time) - 1
        return block, bisect_right(self.blocks[block].starts, time) - 1

    def end(self, block: int, chunk: int) -> int:
        """Return when a chunk ends."""
        starts = self.blocks[block].starts
        if chunk + 1 < len(starts):
            return starts[chunk + 1]
        return self.block_end(block)

    def block_end(self, block: int) -> int:
        """Return when a block ends."""
        return self.firsts[block + 1] if block + 1 < len(self.firsts) else END

    # -- changing ------------------------------------------------------------------------------------------------

    def add(self, start: int, end: int, amounts: Iterable[tuple[int, int]]) -> bool:
        """Add packed amounts to nodes over [start, end), negative ones to free them; return whether there is room."""
        if start >= end:
            return True
        ends = (self.chunk(start), self.chunk(end))
        flips: Flips = {}
        alike: dict[int, int] = {}  # rows → nodes that are flipped in all chunks between
        sound = True
        for node, amount in amounts:
            if amount:
                sound &= self._add(node, start, end, amount, ends, flips, alike)
        for block, first, last in self._between(start, *ends) if alike else ():
            for rows, nodes in alike.items():
                spot = (block, first, last, rows)
                flips[spot] = flips.get(spot, 0) ^ nodes
        for (block, first, last, rows), nodes in flips.items():
            if last == ALL:
                self.blocks[block].flip_all(_places(rows), nodes)
            else:
                self.blocks[block].flip(first, last, _places(rows), nodes)
        for block in {ends[0][0], ends[1][0], *(spot[0] for spot in flips)}:
            self.blocks[block].peaks.clear()
        for time in (start, end):
            self._tidy(time)
        return sound

    def _add(
        self, node: int, start: int, end: int, amount: int, ends: tuple[Spot, Spot], flips: Flips, alike: dict[int, int]
    ) -> bool:
        line = self.lines[node]
        first, last, new_start, new_end, before = line.raise_by(start, end, amount)
        sound = min(line.levels[first:last])[0] >= self.ladder.sound
        self._collect(node, first, before, ends, flips, alike)
        levels = line.levels
        starts, stops = levels[first - 1] != levels[first], levels[last - 1] != levels[last]
        line.join(first, last)
        if starts == new_start:  # the change is new and stays, or existed and is gone
            self._mark(node, start, starts, ends[0], first)
        if stops == new_end:
            self._mark(node, end, stops, ends[1], last if starts else last - 1)
        return sound

    def _collect(
        self,
        node: int,
        first: int,
        before: list[Level],
        ends: tuple[Spot, Spot],
        flips: Flips,
        alike: dict[int, int],
    ) -> None:
        """Collect the chunks in which a node stands on other rows after some of its steps were raised."""
        line, bit, last = self.lines[node], 1 << node, first + len(before)
        times, levels = line.times, line.levels
        seen: Spot | None = None
        tail = ends[0]
        until = self.end(*tail)  # the end of the chunk in which the previous step ends
        for step in range(first, last):
            rows = before[step - first][0] ^ levels[step][0]
            if not rows:
                continue
            if times[step] >= until:
                tail = self.chunk(times[step])
                until = self.end(*tail)
            head = tail
            if times[step + 1] >= until:
                tail = ends[1] if step + 1 == last else self.chunk(times[step + 1])
                until = self.end(*tail)
            if last == first + 1:  # usually; then the chunks in between are the same for all such nodes
                alike[rows] = alike.get(rows, 0) ^ bit
            elif head != tail:
                for block, chunk, upto in self._between(times[step], head, tail):
                    flip = (block, chunk, upto, rows)
                    flips[flip] = flips.get(flip, 0) ^ bit
            for spot in (head, tail):  # chunks that the step covers in part; two steps may meet in one
                block, chunk = spot
                home = self.blocks[block]
                begin = home.starts[chunk]
                if spot != seen and begin < times[step + (spot == tail)]:
                    seen = spot
                    # A node without earlier changes there loses just these rows when more of it is taken.
                    whole = not home.inside[chunk] & bit and levels[step][1] > before[step - first][1]
                    part = rows if whole else _difference(line, first, before, step, begin, self.end(block, chunk))
                    flip = (block, chunk, chunk + 1, part)
                    flips[flip] = flips.get(flip, 0) ^ bit

    def _between(self, start: int, head: Spot, tail: Spot) -> Iterator[Spot3]:
        """Yield the runs of chunks that lie wholly between the chunks of a start and of an end."""
        block, chunk = head
        if self.blocks[block].starts[chunk] < start:
            chunk += 1
        last, upto = tail
        while block < last:
            count = len(self.blocks[block].starts)
            if chunk == 0:
                yield block, 0, ALL
            elif chunk < count:
                yield block, chunk, count
            block, chunk = block + 1, 0
        if chunk < upto:
            yield block, chunk, upto

    def _mark(self, node: int, time: int, changes: bool, spot: Spot, step: int) -> None:
        """Note that a node now changes at a time in a chunk, or no longer does; `step` is there, or comes next."""
        at, chunk = spot
        block, bit = self.blocks[at], 1 << node
        begin = block.starts[chunk]
        if time == begin:
            block.edges[chunk] ^= bit
        elif changes:
            block.inside[chunk] |= bit
            block.changes[chunk] += 1
        else:
            block.changes[chunk] -= 1
            times = self.lines[node].times
            if times[step - 1] <= begin and (step == len(times) or times[step] >= self.end(at, chunk)):
                block.inside[chunk] &= ~bit

    # -- keeping chunks and blocks of a good size ----------------------------------------------------------------

    def _tidy(self, time: int) -> None:
        """Split the chunk and block at a time if they are too large, and join small ones."""
        at, chunk = self.chunk(time)
        block = self.blocks[at]
        changes = block.changes[chunk]
        if changes > self._chunk:
            self._cut(block, chunk, self.end(at, chunk))
            if len(block.starts) > self._block:
                self._cut_block(at)
        elif changes <= self._chunk // 4:
            for left in (chunk, chunk - 1):
                if 0 <= left < len(block.starts) - 1 and _changes(block, left) <= self._chunk // 4:
                    _join(block, left)
            for left in (at, at - 1):
                two = self.blocks[left : left + 2] if left >= 0 else []
                if len(two) == 2 and len(two[0].starts) + len(two[1].starts) <= self._block // 2:
                    self._join_blocks(left)

    def _cut(self, block: Block, chunk: int, end: int) -> None:
        """Split a chunk into two with about as many changes each."""
        begin = block.starts[chunk]
        steps: list[tuple[int, int, int]] = []  # node, and its steps [first, stop) that begin inside this chunk
        moments: list[int] = []
        for node in bits(block.inside[chunk]):
            times = self.lines[node].times
            first = bisect_right(times, begin)
            stop = bisect_left(times, end, first)
            steps.append((node, first, stop))
            moments += times[first:stop]
        moments.sort()
        middle = moments[len(moments) // 2]
        block.peaks.clear()
        for at in range(len(block.rows)):
            row = block.row(at)
            row.insert(chunk, row[chunk])
        block.starts.insert(chunk + 1, middle)
        lefts: dict[int, int] = {}  # rows → the nodes that stand on them in the first half only
        rights: dict[int, int] = {}
        before = after = edge = 0
        for node, first, stop in steps:
            bit = 1 << node
            cut, at_middle, left, right = _halves(self.lines[node], first, stop, middle)
            if cut > first:
                before |= bit
            if cut + at_middle < stop:
                after |= bit
            if at_middle:
                edge |= bit
            if left != right:
                lefts[left & ~right] = lefts.get(left & ~right, 0) | bit
                rights[right & ~left] = rights.get(right & ~left, 0) | bit
        for half, at in ((lefts, chunk), (rights, chunk + 1)):
            for rows, nodes in half.items():
                block.flip(at, at + 1, _places(rows), nodes)
        changes = bisect_left(moments, middle)
        block.inside[chunk : chunk + 1] = (before, after)
        block.edges.insert(chunk + 1, edge)
        block.changes[chunk : chunk + 1] = (changes, len(moments) - changes - edge.bit_count())

    def _cut_block(self, at: int) -> None:
        block = self.blocks[at]
        middle = len(block.starts) // 2
        rows = [block.row(row) for row in range(len(block.rows))]
        new = Block(block.starts[middle:], [row[middle:] for row in rows])
        new.inside, new.edges, new.changes = block.inside[middle:], block.edges[middle:], block.changes[middle:]
        for column in (block.starts, block.inside, block.edges, block.changes, *rows):
            del column[middle:]
        block.least = [None] * len(rows)
        block.peaks.clear()
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
        block.peaks.clear()


def _difference(line: Timeline, first: int, before: list[Level], step: int, begin: int, until: int) -> int:
    """Return the rows on which a node stood throughout a chunk only before, or only after, steps were raised."""
    times, levels, last = line.times, line.levels, first + len(before)
    while times[step] > begin:
        step -= 1
    while step < last and times[step + 1] <= begin:
        step += 1
    old = new = -1
    count = len(times)
    while step < count and times[step] < until:
        new &= levels[step][0]
        old &= before[step - first][0] if first <= step < last else levels[step][0]
        step += 1
    return old ^ new


def _halves(line: Timeline, first: int, stop: int, middle: int) -> tuple[int, bool, int, int]:
    """Return a node's first step from the middle of a chunk on, whether it is right there, and each half's rows."""
    levels = line.levels
    if stop == first + 1:  # the usual case
        time, before, after = line.times[first], levels[first - 1][0], levels[first][0]
        if time < middle:
            return stop, False, before & after, after
        return first, time == middle, before, after if time == middle else before & after
    cut = bisect_left(line.times, middle, first, stop)
    there = cut < stop and line.times[cut] == middle
    left = reduce(and_, [rows for rows, _ in levels[first - 1 : cut]])
    return cut, there, left, reduce(and_, [rows for rows, _ in levels[cut if there else cut - 1 : stop]])


def _changes(block: Block, left: int) -> int:
    """Return how many changes a chunk would have inside if it were joined with the next."""
    return block.changes[left] + block.changes[left + 1] + block.edges[left + 1].bit_count()


def _join(block: Block, left: int) -> None:
    """Join a chunk with the next."""
    right = left + 1
    block.peaks.clear()
    for at in range(len(block.rows)):
        row = block.row(at)
        row[left : right + 1] = (row[left] & row[right],)
    block.inside[left : right + 1] = (block.inside[left] | block.inside[right] | block.edges[right],)
    block.changes[left : right + 1] = (_changes(block, left),)
    del block.starts[right], block.edges[right]
