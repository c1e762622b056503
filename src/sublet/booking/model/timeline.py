"""How much of one node or pool is taken over time: a step function of integers."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BEGINNING = -(10**18)  # microseconds; before any datetime
END = 10**18  # microseconds; after any datetime

# Several amounts are packed in one integer, each in a field with a guard bit on top: one subtraction compares all.
FIELD = 80
FIELDS = 4
BITS = 62  # of one amount; thousands of amounts can be added up below the guard bit
MOST = (1 << BITS) - 1
KEPT = 1 << 16  # levels that are cached
_LOW = (1 << FIELD) - 1
GUARD = sum(1 << (field * FIELD + FIELD - 1) for field in range(FIELDS))


def micros(time: datetime) -> int:
    """Return a datetime as whole microseconds since 1970."""
    return span_of(time - EPOCH)


def span_of(span: timedelta) -> int:
    """Return a timedelta as whole microseconds."""
    return (span.days * 86400 + span.seconds) * 1_000_000 + span.microseconds


def moment(time: int) -> datetime:
    """Return whole microseconds since 1970 as a datetime."""
    return EPOCH + timedelta(microseconds=time)


@lru_cache(maxsize=1024)  # the takes of one booking are usually alike
def pack(first: int, second: int = 0, third: int = 0, fourth: int = 0) -> int:
    """Pack up to four amounts in one integer; negative and absurdly large ones are clipped."""
    low = min(max(first, 0), MOST) | min(max(second, 0), MOST) << FIELD
    return low | min(max(third, 0), MOST) << 2 * FIELD | min(max(fourth, 0), MOST) << 3 * FIELD


def unpack(packed: int) -> tuple[int, int, int, int]:
    """Return the four amounts in a packed integer."""
    return packed & _LOW, packed >> FIELD & _LOW, packed >> 2 * FIELD & _LOW, packed >> 3 * FIELD


def largest(first: int, other: int) -> int:
    """Return the larger of two packed amounts, field by field."""
    a, b, c, d = unpack(first)
    e, f, g, h = unpack(other)
    return max(a, e) | max(b, f) << FIELD | max(c, g) << 2 * FIELD | max(d, h) << 3 * FIELD


Level = tuple[int, int]  # the rank of a step, for an index, and what is taken in it


class Levels(dict[int, Level]):
    """A cache of what is taken → its level, so that equal steps share one object; the rank is always 0."""

    def __missing__(self, used: int) -> Level:
        """Compute a level, and cache it."""
        if len(self) >= KEPT:
            self.clear()
        self[used] = level = (self.rank(used), used)
        return level

    def rank(self, used: int) -> int:
        """Return the rank of a step in which so much is taken."""
        return 0


class Timeline:
    """What is taken of one node or pool over time; neighbouring steps always differ."""

    __slots__ = ("_known", "capacity", "levels", "times")

    def __init__(self, capacity: int, known: Levels | None = None) -> None:
        """Start with a packed capacity and nothing taken."""
        self.capacity = capacity
        self._known = Levels() if known is None else known
        self.times = array("q", [BEGINNING])  # step i lasts from times[i] until times[i + 1]
        self.levels = [self._known[0]]

    def raise_by(self, start: int, end: int, amount: int) -> tuple[int, int, bool, bool, list[Level]]:
        """Take `amount` more over [start, end).

        Return the first raised step and the one after the last, whether each of these two is new, and the levels that
        the raised steps had. Steps at the ends may now equal their neighbours: call `join` to merge them.
        """
        times, levels, known = self.times, self.levels, self._known
        first = bisect_left(times, start)
        new_start = first == len(times) or times[first] != start
        if new_start:
            times.insert(first, start)
            levels.insert(first, levels[first - 1])
        last = bisect_left(times, end, first)
        new_end = last == len(times) or times[last] != end
        if new_end:
            times.insert(last, end)
            levels.insert(last, levels[last - 1])
        before = levels[first:last]
        levels[first:last] = [known[used + amount] for _, used in before]
        return first, last, new_start, new_end, before

    def join(self, first: int, last: int) -> None:
        """Merge equal neighbours at both ends of the raised steps, `first` to before `last`."""
        for at in (last, first):
            if self.levels[at] == self.levels[at - 1]:
                del self.levels[at], self.times[at]

    def add(self, start: int, end: int, amount: int) -> None:
        """Take `amount` more, or less when negative, over [start, end)."""
        if start < end and amount:
            first, last, _, _, _ = self.raise_by(start, end, amount)
            self.join(first, last)

    def fits(self, start: int, end: int, need: int) -> bool:
        """Whether `need` is free for the whole of [start, end)."""
        return self.find_blocked(start, end, need) is None

    def find_blocked(self, start: int, end: int, need: int) -> int | None:
        """Return the first moment of [start, end) at which `need` is not free, or None."""
        if not need or start >= end:
            return None
        room = self.capacity + GUARD - need
        times, levels = self.times, self.levels
        at = bisect_right(times, start) - 1
        while True:
            if (room - levels[at][1]) & GUARD != GUARD:
                return max(start, times[at])
            at += 1
            if at == len(times) or times[at] >= end:
                return None

    def reaches(self, start: int, end: int, rank: int) -> bool:
        """Whether any step in [start, end) has all the bits of this rank."""
        times, levels = self.times, self.levels
        at = bisect_right(times, start) - 1
        while levels[at][0] & rank != rank:
            at += 1
            if at == len(times) or times[at] >= end:
                return False
        return True

    def first(self, start: int, span: int, need: int, limit: int = END) -> int | None:
        """Return the earliest time in [start, limit) from which `need` is free for `span`, or None."""
        if not need:
            return start
        room = self.capacity + GUARD - need
        times, levels = self.times, self.levels
        begin = start
        for at in range(bisect_right(times, start) - 1, len(times)):
            if times[at] >= begin + span:
                return begin
            if (room - levels[at][1]) & GUARD != GUARD:
                if at + 1 == len(times) or times[at + 1] >= limit:
                    return None
                begin = times[at + 1]
        return begin

    def peak(self, start: int, end: int) -> int:
        """Return the most that is taken at any moment of [start, end), field by field."""
        most = 0
        for _, _, used in self.steps(start, end):
            most = largest(most, used)
        return most

    def steps(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yield the steps (begin, end, taken) inside [start, end), cut at its ends."""
        times = self.times
        at = bisect_right(times, start) - 1
        while at < len(times) and times[at] < end:
            until = times[at + 1] if at + 1 < len(times) else END
            yield max(start, times[at]), min(until, end), self.levels[at][1]
            at += 1
