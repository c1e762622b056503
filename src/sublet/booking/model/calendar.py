"""Capacity over time: exact nodes with cores, memory, GPUs and disk, storage pools, and pledges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from sublet.booking.model.index import Index
from sublet.booking.model.ladder import bits
from sublet.booking.model.offer import Node, Take
from sublet.booking.model.pledge import OTHER_MARK, is_pledge
from sublet.booking.model.pledge_bounds import PledgeBounds
from sublet.booking.model.request import Window
from sublet.booking.model.search import Search
from sublet.booking.model.shape import Shape
from sublet.booking.model.timeline import BEGINNING, BITS, Timeline, micros, moment, pack, span_of, unpack
from sublet.kernel.errors import NoRoom, NotBookable, NotFound

NOTHING: Mapping[str, int] = MappingProxyType({})
Pairs = list[tuple[int, int]]  # a node's place in the index, and a packed amount
Need = tuple[Timeline, int, int, int]  # a pool's line, how much of it, how long before a start, and for how long


@dataclass(frozen=True, slots=True)
class Slot:
    """A start, and the exact nodes that are free from then on."""

    start: datetime
    nodes: tuple[str, ...]


class Calendar:
    """What is booked of some nodes and pools, and where there is room.

    Cores that are taken from a pool of pledges count in each bound on those pledges; of several such takes under one
    key the largest counts, because they are held for offers of which at most one is accepted.
    It is not thread-safe: even a search changes internal state.
    """

    def __init__(self, nodes: Iterable[Node], pools: Mapping[str, int] = NOTHING, *, grain: int = 512) -> None:
        """Start with everything free; a smaller grain makes a finer index, which searches faster and books slower."""
        self.nodes = tuple(nodes)
        self.pools: Mapping[str, int] = MappingProxyType(dict(pools))
        order = sorted(self.nodes, key=lambda node: (node.gpus, node.cores, node.memory))
        self._names = [node.name for node in order]  # smallest first: of equals, the search takes the first
        self._places = {name: place for place, name in enumerate(self._names)}
        self._index = Index([pack(node.cores, node.memory, node.gpus, node.disk) for node in order], grain)
        self._pledges = PledgeBounds(self.pools)
        self._pools = self._pledges.list_scheduled()
        self._pools |= {name: (Timeline(pack(size)),) for name, size in self.pools.items() if not is_pledge(name)}
        self._takes: dict[str, tuple[Take, ...]] = {}

    def take(self, key: str, takes: Iterable[Take]) -> None:
        """Book all takes under a key, or none: raise NotBookable if any exceeds capacity at any instant."""
        wanted = tuple(takes)
        if not self._book(wanted):
            raise NotBookable()
        self._remember(key, wanted)

    def put(self, key: str, takes: Iterable[Take]) -> None:
        """Record existing bookings without a check; takes of unknown nodes and pools are only remembered."""
        known = tuple(takes)
        self._add(known)
        self._remember(key, known)

    def release(self, key: str) -> tuple[Take, ...]:
        """Free everything that is booked under a key, and return it."""
        takes = self._takes.pop(key, ())
        self._add(takes, -1)
        return takes

    def takes(self, key: str) -> tuple[Take, ...]:
        """Return everything that is booked under a key."""
        return self._takes.get(key, ())

    @contextmanager
    def set_aside(self, keys: Iterable[str]) -> Iterator[None]:
        """Search as if nothing were booked under these keys; the bookings are restored afterwards."""
        released = [(key, self.release(key)) for key in keys]
        try:
            yield
        finally:
            for key, takes in released:
                if takes:
                    self.put(key, takes)

    def fits(self, takes: Iterable[Take]) -> bool:
        """Whether all takes could be booked together."""
        wanted = tuple(takes)
        if len({(take.where, take.pool) for take in wanted}) == len(wanted):
            return not any(map(_absurd, wanted)) and all(map(self._fits, wanted))
        if not self._book(wanted):
            return False
        self._add(wanted, -1)
        return True

    def _fits(self, take: Take) -> bool:
        parts = self._parts(take)
        start, end = micros(take.start), micros(take.end)
        return parts is not None and all(line.fits(start, end, amount) for line, amount in parts)

    def extend(self, key: str, until: datetime) -> tuple[Take, ...]:
        """Move a booking's end to `until` and return its takes; raise NoRoom, with no change, if it doesn't fit.

        The node takes that end last then end at `until`; pool takes that end with or after them move by as much.
        """
        takes = self._takes.get(key)
        if takes is None:
            raise NotFound(noun="booking", name=key)
        ends = [take.end for take in takes if not take.pool] or [take.end for take in takes]
        if not ends:
            return ()
        old = max(ends)
        by = until - old
        moved = [take for take in takes if take.end >= old]
        if by > timedelta(0):
            more = [replace(take, start=max(take.start, take.end), end=take.end + by) for take in moved]
            if not self._book([take for take in more if self._parts(take)]):
                raise NoRoom(until=until, free_until=self._free_until(more, by, old))
        else:
            self._add([replace(take, start=max(take.start, take.end + by)) for take in moved], -1)
        after = tuple(replace(take, end=max(take.start, take.end + by)) if take.end >= old else take for take in takes)
        self._takes[key] = after
        return after

    def _free_until(self, more: Iterable[Take], by: timedelta, old: datetime) -> datetime:
        """Return how late a booking could end if all its takes were extended by the same time."""
        together: dict[tuple[Timeline, int], int] = {}
        for take in more:
            for line, amount in self._parts(take) or ():
                spot = (line, micros(take.start))
                together[spot] = together.get(spot, 0) + amount
        span = least = span_of(by)
        for (line, start), amount in together.items():
            blocked = line.find_blocked(start, start + span, amount)
            if blocked is not None:
                least = min(least, blocked - start)
        return old + timedelta(microseconds=least)

    def earliest(
        self,
        shape: Shape,
        nodes: int,
        duration: timedelta,
        windows: Sequence[Window],
        *,
        storage: Mapping[str, int] = NOTHING,
        lead: timedelta = timedelta(0),
        tail: timedelta = timedelta(0),
        pledge: str = "",
    ) -> Slot | None:
        """Find the earliest start in the windows at which so many nodes each have the shape free for the duration.

        Each storage pool must have the bytes from `lead` before the start until `tail` after the end; the pledges of
        the pool `pledge` must have the cores of all nodes for the duration itself. If more nodes fit than are wanted,
        those with the fewest spare GPUs and then the fewest spare cores around the start are chosen, and of equals the
        smallest, so that whole nodes stay free. The same calls always give the same answers.
        """
        span, ahead = max(span_of(duration), 1), span_of(lead)
        extent = ahead + span + span_of(tail)
        search = Search(self._index, pack(shape.cores, shape.memory, shape.gpus, shape.disk), max(nodes, 0), span)
        sizes = {name: pack(size) for name, size in storage.items() if size > 0}
        if not search.possible or not sizes.keys() <= self._pools.keys():
            return None
        needs: list[Need] = [(line, size, ahead, extent) for name, size in sizes.items() for line in self._pools[name]]
        if pledge:
            whole = Shape(shape.cores * nodes, shape.memory * nodes, shape.gpus * nodes)
            needs += [(line, amount, 0, span) for line, amount in self._pledges.list_needs(pledge, whole)]
            kept = pack(sum(storage.values()))
            needs += [(line, kept, ahead, extent) for line in self._pledges.list_storage(pledge) if kept]
        end = BEGINNING
        for window in windows if len(windows) == 1 else sorted(windows, key=lambda window: window.start):
            start = micros(window.start)
            start, end = max(start, end), max(start + 1, micros(window.end), end)  # skip what was searched already
            while start < end:
                start = _first(needs, start, end) if needs else start
                opening = search.find(start, end)
                if opening is None:
                    break
                if opening[0] == start or not needs:
                    return Slot(moment(opening[0]), tuple(self._names[place] for place in bits(opening[1])))
                start = opening[0]
        return None

    def free(self, start: datetime, end: datetime) -> dict[str, Shape]:
        """Return, per node, what is free throughout [start, end)."""
        begin, until = micros(start), micros(end)
        shapes = {}
        for node in self.nodes:
            taken = unpack(self._index.lines[self._places[node.name]].peak(begin, until))
            there = (node.cores, node.memory, node.gpus, node.disk)
            shapes[node.name] = Shape(*(max(has - used, 0) for has, used in zip(there, taken, strict=True)))
        return shapes

    def busy(self, start: datetime, end: datetime) -> dict[str, list[Take]]:
        """Return, per node and pool, the steps of what is taken inside [start, end); free times have no step."""
        begin, until = micros(start), micros(end)
        named = [name for name in self.pools if not name.startswith(OTHER_MARK)]
        takes: dict[str, list[Take]] = {name: [] for name in (*(node.name for node in self.nodes), *named)}
        for name, line in zip(self._names, self._index.lines, strict=True):
            for first, last, used in line.steps(begin, until):
                if used:
                    cores, memory, gpus, disk = unpack(used)
                    takes[name].append(Take(name, moment(first), moment(last), cores, memory, gpus, disk=disk))
        counted = {name: lines[0] for name, lines in self._pools.items() if name in self.pools}
        for name, line in (counted | self._pledges.list_counted()).items():
            for first, last, used in line.steps(begin, until):
                if size := unpack(used)[0]:
                    takes.setdefault(name, []).append(Take(name, moment(first), moment(last), size=size, pool=True))
        return takes

    def room(self, pledge: str, start: datetime, end: datetime) -> Shape:
        """Return the most that a pool of pledges could give a booking throughout [start, end), nodes aside."""
        return self._pledges.room(pledge, micros(start), micros(end))

    def storage_room(self, pool: str, start: datetime, end: datetime) -> int:
        """Return the most bytes that a booking in a pool could have throughout [start, end)."""
        lines = self._pools.get(pool, ())
        begin, until = micros(start), micros(end)
        return min((max(line.capacity - line.peak(begin, until), 0) for line in lines), default=0)

    def _parts(self, take: Take) -> list[tuple[Timeline, int]] | None:
        """Return the timelines in which a take is booked, and how much in each; None if its node or pool is unknown."""
        if not take.pool:
            place = self._places.get(take.where)
            return None if place is None else [(self._index.lines[place], _amount(take))]
        if is_pledge(take.where):
            return self._pledges.list_parts(take)
        lines = self._pools.get(take.where)
        return None if lines is None else [(line, _amount(take)) for line in lines]

    def _knows(self, take: Take) -> bool:
        if not take.pool:
            return take.where in self._places
        return is_pledge(take.where) or take.where in self._pools

    def _book(self, takes: Sequence[Take]) -> bool:
        """Add the takes if all of them fit together; otherwise change nothing."""
        if any(map(_absurd, takes)):
            return False
        if not all(map(self._knows, takes)):
            return False
        if self._add(takes):
            return True
        self._add(takes, -1)
        return False

    def _add(self, takes: Sequence[Take], sign: int = 1) -> bool:
        """Add or remove the takes of known nodes and pools; return whether there is room for all of them."""
        nodes, pools = self._read(takes)
        room = True
        for line, start, end, amount in pools:
            room &= line.fits(start, end, amount)
            line.add(start, end, sign * amount)
        for (start, end), pairs in nodes.items():
            signed = pairs if sign > 0 else [(place, -amount) for place, amount in pairs]
            room &= self._index.add(start, end, signed)
        return room

    def _read(self, takes: Sequence[Take]) -> tuple[dict[tuple[int, int], Pairs], list[tuple[Timeline, int, int, int]]]:
        """Convert takes to integers: those of nodes grouped by time, those of pools each with its timeline."""
        nodes: dict[tuple[int, int], Pairs] = {}
        pools: list[tuple[Timeline, int, int, int]] = []
        pledged: list[Take] = []
        last: Take | None = None
        for take in takes:
            if last is None or take.start is not last.start or take.end is not last.end:
                start, end, last = micros(take.start), micros(take.end), take
                pairs = nodes.setdefault((start, end), [])
            if take.pool:
                if is_pledge(take.where):
                    pledged.append(take)
                else:
                    pools += [(line, start, end, _amount(take)) for line in self._pools.get(take.where, ())]
            elif take.where in self._places:
                pairs.append((self._places[take.where], pack(take.cores, take.memory, take.gpus, take.disk)))
        if pledged:
            pools += self._pledges.sum_drawn(pledged)
        return nodes, pools

    def _remember(self, key: str, takes: tuple[Take, ...]) -> None:
        self._takes[key] = self._takes.get(key, ()) + takes


def _first(needs: Sequence[Need], start: int, end: int) -> int:
    """Return the first moment from `start` on at which every pool has room, or `end` if there is none before it."""
    settled = 0
    while settled < len(needs) and start < end:
        for line, size, ahead, extent in needs:
            first = line.first(start - ahead, extent, size, end - ahead)
            moved = end if first is None else first + ahead
            settled = settled + 1 if moved == start else 1
            start = moved
    return start


def _amount(take: Take) -> int:
    return pack(take.size, take.memory, take.gpus) if take.pool else pack(take.cores, take.memory, take.gpus, take.disk)


def _absurd(take: Take) -> bool:
    """Whether a take has a negative amount, or one that is too large to count."""
    return (take.cores | take.memory | take.gpus | take.size | take.disk) >> BITS != 0
