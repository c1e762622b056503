"""A calendar as a picture: what is taken on each node, and what is offered, laid out in percent of the width."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from sublet.booking.model.offer import Node, Take
from sublet.web.axis import ticks
from sublet.web.words import has

AXIS = 40  # pixels above the first lane
NAME = 22  # the line with a node's name
TRACK = 30  # the strip that shows how much is taken
ROW = 28  # one row of bars below it
GAP = 14  # between lanes
BADGE = 7.5  # a bar's number needs this much of the width, even on a phone
DAY, DAY_ON_A_PHONE = 10, 30  # percent of the width that the name of a day needs
MOST_LANES = 12


@dataclass(frozen=True, slots=True)
class CalendarMark:
    """Something to draw on nodes: an offer, or a session's own booking."""

    label: str  # "1"
    nodes: tuple[str, ...]
    start: datetime
    end: datetime
    title: str
    tone: str = "offer"  # or "predicted", "mine", "past"
    spread: tuple[datetime, datetime] | None = None  # the whole time in which it may run, if its start is predicted
    target: str = ""  # the id of the element on the same page that has its details

    @property
    def extent(self) -> tuple[datetime, datetime]:
        """Return the start and end of the mark, including its spread."""
        first, last = self.spread or (self.start, self.end)
        return min(first, self.start), max(last, self.end)


@dataclass(frozen=True, slots=True)
class CalendarStep:
    """A time during which a part of a node is taken."""

    x: float
    width: float
    y: float
    height: float
    take: Take
    share: int  # percent of the node's scarcest resource


@dataclass(frozen=True, slots=True)
class CalendarBar:
    """A mark on one lane."""

    x: float
    width: float
    y: float
    mark: CalendarMark
    spread: tuple[float, float] | None = None  # left edge and width of the spread


@dataclass(frozen=True, slots=True)
class Lane:
    """One node: its name, how much of it is taken when, and its bars."""

    name: str
    detail: str
    y: float
    track: float
    steps: tuple[CalendarStep, ...]
    bars: tuple[CalendarBar, ...]


@dataclass(frozen=True, slots=True)
class CalendarLine:
    """A tick on the time axis."""

    x: float
    label: str
    day: str
    fine: bool  # left out where there is little room
    fine_day: bool  # the same for the day above it
    anchor: str


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is needed to draw a calendar."""

    start: datetime
    end: datetime
    height: float
    lines: tuple[CalendarLine, ...]
    lanes: tuple[Lane, ...]
    now: float | None
    more: int  # nodes that are not drawn
    marks: tuple[CalendarMark, ...] = ()  # each once, on however many nodes it is drawn


def draw(
    nodes: Sequence[Node],
    takes: Iterable[Take],
    marks: Sequence[CalendarMark],
    start: datetime,
    end: datetime,
    *,
    now: datetime,
    zone: ZoneInfo,
    most: int = MOST_LANES,
) -> Picture:
    """Lay out these nodes from start to end, so that every mark is drawn at least once."""
    by_node: dict[str, list[Take]] = {}
    for take in takes:
        if not take.pool:
            by_node.setdefault(take.where, []).append(take)
    marked = {name for mark in marks for name in mark.nodes} & {node.name for node in nodes}
    needed = _cover(marks, marked)
    order = sorted(
        range(len(nodes)),
        key=lambda i: (nodes[i].name not in needed, nodes[i].name not in marked, nodes[i].name not in by_node, i),
    )
    chosen = [nodes[i] for i in sorted(order[: max(most, len(needed))])]
    scale = _Scale(start, end)
    y = float(AXIS)
    lanes: list[Lane] = []
    for node in chosen:
        lane, y = _lane(node, by_node.get(node.name, ()), [m for m in marks if node.name in m.nodes], scale, y)
        lanes.append(lane)
    if anywhere := [mark for mark in marks if not marked.intersection(mark.nodes)]:
        lane, y = _placeless(anywhere, scale, y)
        lanes.append(lane)
    here = scale.at(now) if start <= now < end else None
    lines, more = _lines(start, end, scale, zone), len(nodes) - len(chosen)
    return Picture(start, end, y - GAP / 2, lines, tuple(lanes), here, more, tuple(marks))


def _cover(marks: Sequence[CalendarMark], known: set[str]) -> set[str]:
    """Choose a few nodes so that every mark is on one of them; nodes that several marks share come first."""
    shared = Counter(name for mark in marks for name in set(mark.nodes) & known)
    chosen: set[str] = set()
    for mark in marks:
        names = [name for name in mark.nodes if name in known]
        if names and chosen.isdisjoint(names):
            chosen.add(max(names, key=lambda name: shared[name]))
    return chosen


@dataclass(frozen=True, slots=True)
class _Scale:
    start: datetime
    end: datetime

    def at(self, time: datetime) -> float:
        """Return a time's position in percent from the left, within the picture."""
        share = (time - self.start) / (self.end - self.start)
        return round(min(max(share, 0.0), 1.0) * 100, 3)


def _lines(start: datetime, end: datetime, scale: _Scale, zone: ZoneInfo) -> tuple[CalendarLine, ...]:
    """Return the ticks; where the names of two days would touch, the earlier is left out."""
    lines: list[CalendarLine] = []
    following = 1000.0  # where the next day's name is
    for tick in reversed(ticks(start, end, zone)):
        x = scale.at(tick.time)
        room = following - x
        following = x if tick.day else following
        anchor = "start" if x < 4 else "end" if x > 96 else "middle"
        lines.append(
            CalendarLine(x, tick.label, tick.day if room > DAY else "", tick.fine, room < DAY_ON_A_PHONE, anchor)
        )
    return tuple(reversed(lines))


def _lane(
    node: Node, takes: Iterable[Take], marks: Sequence[CalendarMark], scale: _Scale, y: float
) -> tuple[Lane, float]:
    track = y + NAME
    seen = [take for take in takes if take.end > scale.start and take.start < scale.end]
    steps = tuple(_step(node, take, scale, track) for take in seen)
    bars, rows = _bars(marks, scale, track + TRACK + 4)
    return Lane(node.name, has(node), y, track, steps, bars), track + TRACK + (4 + rows * ROW if rows else 0) + GAP


def _placeless(marks: Sequence[CalendarMark], scale: _Scale, y: float) -> tuple[Lane, float]:
    """Lay out marks whose node the platform chooses, on a lane without a track."""
    bars, rows = _bars(marks, scale, y + NAME)
    return Lane("any node", "the platform chooses", y, 0, (), bars), y + NAME + rows * ROW + GAP


def _step(node: Node, take: Take, scale: _Scale, track: float) -> CalendarStep:
    share = min(share_of(node, take), 1.0)
    x = scale.at(take.start)
    height = round(max(TRACK * share, 2.0), 2)
    return CalendarStep(
        x, round(scale.at(take.end) - x, 3), round(track + TRACK - height, 2), height, take, round(share * 100)
    )


def share_of(node: Node, take: Take) -> float:
    """Return how much of a node is taken: of cores, memory, GPUs or disk, whichever is scarcest."""
    pairs = ((take.cores, node.cores), (take.memory, node.memory), (take.gpus, node.gpus), (take.disk, node.disk))
    return max(taken / has for taken, has in pairs if has)


def _bars(marks: Sequence[CalendarMark], scale: _Scale, y: float) -> tuple[tuple[CalendarBar, ...], int]:
    """Lay out marks in as few rows as they need without touching; return the bars and the number of rows."""
    free: list[float] = []  # per row: from where it is free
    bars: list[CalendarBar] = []
    for mark in sorted(marks, key=lambda m: (m.extent[0], m.label)):
        x, right = scale.at(mark.start), scale.at(mark.end)
        left, last = (scale.at(time) for time in mark.extent)
        row = next((i for i, edge in enumerate(free) if edge <= left), len(free))
        if row == len(free):
            free.append(0.0)
        free[row] = max(last, x + BADGE)
        spread = (left, round(last - left, 3)) if mark.spread else None
        bars.append(CalendarBar(x, round(max(right - x, 0.6), 3), y + row * ROW, mark, spread))
    return tuple(bars), len(free)


def frame(marks: Sequence[CalendarMark], now: datetime) -> tuple[datetime, datetime]:
    """Return the time span to draw, so that the marks fill the picture and the present is in it if it is near."""
    first, last = min(mark.extent[0] for mark in marks), max(mark.extent[1] for mark in marks)
    length = last - first
    start = now if timedelta(0) < first - now < length * 2 else first
    margin = max((last - start) * 0.06, timedelta(minutes=2))
    return start - margin, last + margin


def without(takes: Iterable[Take], own: Iterable[Take]) -> list[Take]:
    """Return what is taken without the person's own part, so that they see what others have."""
    mine: dict[str, list[Take]] = {}
    for take in own:
        mine.setdefault(take.where, []).append(take)
    left: list[Take] = []
    for take in takes:
        left.extend(_less(take, mine.get(take.where, ())))
    return left


def _less(take: Take, own: Iterable[Take]) -> list[Take]:
    over = [mine for mine in own if mine.start < take.end and mine.end > take.start]
    edges = sorted(
        {take.start, take.end}
        | {edge for mine in over for edge in (mine.start, mine.end) if take.start < edge < take.end}
    )
    pieces: list[Take] = []
    for start, end in pairwise(edges):
        inside = [mine for mine in over if mine.start <= start and mine.end >= end]
        cores = take.cores - sum(mine.cores for mine in inside)
        memory = take.memory - sum(mine.memory for mine in inside)
        gpus = take.gpus - sum(mine.gpus for mine in inside)
        disk = max(take.disk - sum(mine.disk for mine in inside), 0)
        if cores > 0 or memory > 0 or gpus > 0 or disk:
            part = replace(take, start=start, end=end, cores=max(cores, 0), memory=max(memory, 0), gpus=max(gpus, 0))
            pieces.append(replace(part, disk=disk))
    return pieces
