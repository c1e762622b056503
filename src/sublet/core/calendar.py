"""Capacity over time: exact nodes with cores, memory and GPUs, and storage pools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType

from sublet.core.offer import Node, Shape, Take
from sublet.core.request import Window
from sublet.core.timeline import MOST, Timeline, micros, moment, pack, span_of, unpack
from sublet.errors import NoRoom, NotBookable, NotFound

NOTHING: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Slot:
    """A start, and the exact nodes that are free from then on."""

    start: datetime
    nodes: tuple[str, ...]


class Calendar:
    """What is booked of some nodes and storage pools, and where there is room."""

    def __init__(self, nodes: Iterable[Node], pools: Mapping[str, int] = NOTHING) -> None:
        """Everything is free."""
        self.nodes = tuple(nodes)
        self.pools: Mapping[str, int] = MappingProxyType(dict(pools))
        self._nodes = {node.name: Timeline(pack(node.cores, node.memory, node.gpus)) for node in self.nodes}
        self._pools = {name: Timeline(pack(size)) for name, size in self.pools.items()}
        self._takes: dict[str, tuple[Take, ...]] = {}

    def take(self, key: str, takes: Iterable[Take]) -> None:
        """Book them all under a key, or nothing: NotBookable if any is over capacity at any instant."""
        wanted = tuple(takes)
        if not self._add_all(wanted):
            raise NotBookable()
        self._remember(key, wanted)

    def put(self, key: str, takes: Iterable[Take]) -> None:
        """Record what is true already, unchecked; takes of unknown nodes and pools are only remembered."""
        known = tuple(takes)
        for take in known:
            self._add(take)
        self._remember(key, known)

    def release(self, key: str) -> tuple[Take, ...]:
        """Free all that is booked under a key and say what that was."""
        takes = self._takes.pop(key, ())
        for take in takes:
            self._remove(take)
        return takes

    def takes(self, key: str) -> tuple[Take, ...]:
        """All that is booked under a key."""
        return self._takes.get(key, ())

    def fits(self, takes: Iterable[Take]) -> bool:
        """Whether all of them could be booked together."""
        wanted = tuple(takes)
        if not self._add_all(wanted):
            return False
        for take in wanted:
            self._remove(take)
        return True

    def extend(self, key: str, until: datetime) -> tuple[Take, ...]:
        """Let a booking end at `until` and say what is booked now; NoRoom leaves all as it was.

        The key's node takes that end last end at `until`; its pool takes that end then or later move by as much.
        """
        takes = self._takes.get(key)
        if takes is None:
            raise NotFound(noun="booking", name=key)
        ends = [take.end for take in takes if not take.pool] or [take.end for take in takes]
        if not ends:
            return ()
        old = max(ends)
        by = until - old
        moved = [take for take in takes if take.end == old or (take.pool and take.end > old)]
        if by > timedelta(0):
            more = [replace(take, start=max(take.start, take.end), end=take.end + by) for take in moved]
            if not self._add_all([take for take in more if self._line(take)]):
                raise NoRoom(until=until, free_until=self._free_until(more, by, old))
        else:
            for take in moved:
                self._remove(replace(take, start=max(take.start, take.end + by)))
        after = tuple(replace(t, end=max(t.start, t.end + by)) if t in moved else t for t in takes)
        self._takes[key] = after
        return after

    def _free_until(self, more: Iterable[Take], by: timedelta, old: datetime) -> datetime:
        """How far the takes that go on from a booking's end could go, all by the same time."""
        together: dict[tuple[Timeline, int], int] = {}
        for take in more:
            line = self._line(take)
            if line is not None:
                spot = (line, micros(take.start))
                together[spot] = together.get(spot, 0) + _amount(take)
        span = least = span_of(by)
        for (line, start), amount in together.items():
            blocked = line.blocked(start, start + span, amount)
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
    ) -> Slot | None:
        """The earliest start inside the windows at which so many nodes each have the shape free for the whole time.

        Each storage pool must have the bytes from `lead` before the start until `tail` after the end.
        """
        need = pack(shape.cores, shape.memory, shape.gpus)
        span = max(span_of(duration), 1)
        ahead, extent = span_of(lead), span_of(lead) + span + span_of(tail)
        wanted = {name: pack(size) for name, size in storage.items() if size > 0}
        if any(name not in self._pools for name in wanted):
            return None
        for window in sorted(windows, key=lambda window: window.start):
            start = micros(window.start)
            end = max(micros(window.end), start + 1)
            begin: int | None = start
            while begin is not None:
                start = begin
                chosen, begin = self._nodes_at(start, span, need, nodes, end)
                for name, size in wanted.items():
                    later = self._pools[name].first(start - ahead, extent, size, end - ahead)
                    if later is None:
                        begin = None
                    elif begin is not None:
                        begin = max(begin, later + ahead)
                if begin == start:
                    return Slot(moment(start), chosen)
        return None

    def _nodes_at(self, start: int, span: int, need: int, count: int, end: int) -> tuple[tuple[str, ...], int | None]:
        """Enough nodes at `start`; else the next time before `end` at which there may be enough."""
        firsts = [
            (first, *unpack(line.capacity - line.peak(start, start + 1))[::-1], name)
            for name, line in self._nodes.items()
            if (first := line.first(start, span, need, end)) is not None
        ]
        if count <= 0:
            return (), start
        if len(firsts) < count:
            return (), None
        firsts.sort()
        return tuple(found[-1] for found in firsts[:count]), firsts[count - 1][0]

    def free(self, start: datetime, end: datetime) -> dict[str, Shape]:
        """Per node, the least that is free at any moment of [start, end)."""
        begin, until = micros(start), micros(end)
        found = {}
        for node in self.nodes:
            cores, memory, gpus = unpack(self._nodes[node.name].peak(begin, until))
            found[node.name] = Shape(max(node.cores - cores, 0), max(node.memory - memory, 0), max(node.gpus - gpus, 0))
        return found

    def busy(self, start: datetime, end: datetime) -> dict[str, list[Take]]:
        """Per node and pool, the steps of what is taken inside [start, end); where nothing is, there is no step."""
        begin, until = micros(start), micros(end)
        found: dict[str, list[Take]] = {name: [] for name in (*self._nodes, *self._pools)}
        for name, line in self._nodes.items():
            for first, last, used in line.steps(begin, until):
                if used:
                    found[name].append(Take(name, moment(first), moment(last), *unpack(used)))
        for name, line in self._pools.items():
            for first, last, used in line.steps(begin, until):
                if used:
                    found[name].append(Take(name, moment(first), moment(last), size=used, pool=True))
        return found

    def _line(self, take: Take) -> Timeline | None:
        return (self._pools if take.pool else self._nodes).get(take.where)

    def _add(self, take: Take) -> None:
        line = self._line(take)
        if line is not None:
            line.add(micros(take.start), micros(take.end), _amount(take))

    def _remove(self, take: Take) -> None:
        line = self._line(take)
        if line is not None:
            line.add(micros(take.start), micros(take.end), -_amount(take))

    def _add_all(self, takes: Sequence[Take]) -> bool:
        """Add them one after another, so that they count against each other; or leave all as it was."""
        for at, take in enumerate(takes):
            line = self._line(take)
            start, end = micros(take.start), micros(take.end)
            if line is None or not line.fits(start, end, _amount(take)) or _absurd(take):
                for added in takes[:at]:
                    self._remove(added)
                return False
            line.add(start, end, _amount(take))
        return True

    def _remember(self, key: str, takes: tuple[Take, ...]) -> None:
        self._takes[key] = self._takes.get(key, ()) + takes


def _amount(take: Take) -> int:
    return pack(take.size) if take.pool else pack(take.cores, take.memory, take.gpus)


def _absurd(take: Take) -> bool:
    amounts = (take.cores, take.memory, take.gpus, take.size)
    return min(amounts) < 0 or max(amounts) > MOST
