"""P1: the earliest start inside a window on 1024 exact nodes, beside a sweep over one pooled step function."""

from __future__ import annotations

import gc
import math
import os
import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import process_time

from benchmarks.row import Row
from benchmarks.size import WHOLE, Size
from sublet.booking.model.calendar import Calendar, Slot
from sublet.booking.model.offer import Node, Take
from sublet.booking.model.request import GIB, Window
from sublet.booking.model.shape import Shape

NAME = "find the earliest start on 1024 nodes (cores, memory, GPUs; exact nodes)"

T0 = datetime(2026, 1, 1, tzinfo=UTC)
LOAD = 0.85  # work that arrives, as a part of what the nodes could do
WARM_UP = 5000  # jobs
LENGTHS = (300, 3 * 86400)  # seconds
QUERIES = 2000
SIZES = (1000, 10_000, 100_000)

# Half of the jobs are small, few are large; shapes are what people type, powers of two or not.
COUNTS = random.Random(0).sample([1] * 50 + [2] * 20 + [3] * 6 + [4] * 14 + [8] * 5 + [16] * 3 + [33] + [64], 100)
SHAPES = (
    *[Shape(1, 2 * GIB), Shape(2, 7 * GIB), Shape(4, 16 * GIB), Shape(6, 20 * GIB), Shape(8, 32 * GIB)],
    *[Shape(12, 100 * GIB), Shape(16, 64 * GIB), Shape(24, 90 * GIB), Shape(32, 128 * GIB), Shape(48, 180 * GIB)],
    *[
        Shape(64, 250 * GIB),
        Shape(64, 128 * GIB),
        Shape(8, 64 * GIB, 1),
        Shape(24, 120 * GIB, 2),
        Shape(64, 400 * GIB, 4),
    ],
)
WEIGHTS = (10, 8, 10, 5, 10, 3, 9, 5, 9, 5, 8, 8, 5, 1, 1)


@dataclass(frozen=True)
class Wish:
    """One job: what it wants and the windows that it may start in."""

    shape: Shape
    nodes: int
    duration: timedelta
    windows: list[Window]


def cluster() -> list[Node]:
    """1024 nodes of three sorts."""
    plain = [Node(f"c{n:04}", 64, 256 * GIB) for n in range(768)]
    large = [Node(f"m{n:04}", 128, 1024 * GIB) for n in range(128)]
    return plain + large + [Node(f"g{n:04}", 64, 512 * GIB, 4) for n in range(128)]


def wish(dice: random.Random, start: datetime) -> Wish:
    """A job, minutes to days long, that may start in some window from a time on: an hour to two weeks wide.

    One in five instead names three hours on each of five days.
    """
    shape = dice.choices(SHAPES, WEIGHTS)[0]
    count = dice.choice(COUNTS)
    seconds = round(math.exp(dice.uniform(*map(math.log, LENGTHS))))
    if dice.random() < 0.2:
        days = [start + timedelta(days=day) for day in range(5)]
        windows = [Window(day, day + timedelta(hours=3)) for day in days]
    else:
        wide = timedelta(hours=math.exp(dice.uniform(0, math.log(14 * 24))))
        windows = [Window(start, start + wide)]
    return Wish(shape, count, timedelta(seconds=seconds), windows)


def takes(job: Wish, slot: Slot) -> list[Take]:
    """What is booked for a job."""
    end, shape = slot.start + job.duration, job.shape
    return [Take(node, slot.start, end, shape.cores, shape.memory, shape.gpus) for node in slot.nodes]


def build(count: int, calendar: Calendar, warm_up: int) -> tuple[datetime, datetime, list[Take]]:
    """Book jobs, each at its earliest as it arrives, until so many are booked that end after the warm-up.

    By then as many jobs end as arrive, and what is free is scattered. Those that have ended are released.
    Gives when the warm-up was over, when the last job arrived, and all that is booked.
    """
    dice = random.Random(count)
    cores = sum(node.cores for node in calendar.nodes)
    begin = clock = T0
    live: dict[str, list[Take]] = {}
    number = 0
    while len(live) < count or number <= warm_up:
        job = wish(dice, clock)
        clock += timedelta(seconds=job.nodes * job.shape.cores * job.duration.total_seconds() / cores / LOAD)
        slot = calendar.earliest(job.shape, job.nodes, job.duration, job.windows)
        if slot is not None:
            live[str(number)] = takes(job, slot)
            calendar.take(str(number), live[str(number)])
        number += 1
        if number == warm_up:
            begin = clock
            for key in [key for key, booked in live.items() if booked[0].end <= begin]:
                calendar.release(key)
                del live[key]
    return begin, clock, [take for booked in live.values() for take in booked]


class Pooled:
    """One step function for all nodes together, swept in plain Python: fast, and it may say yes where no nodes are."""

    def __init__(self, nodes: Sequence[Node], booked: Sequence[Take]) -> None:
        """Add up what is free after each change."""
        changes: dict[float, list[int]] = {}
        for take in booked:
            for moment, sign in ((take.start, -1), (take.end, 1)):
                step = changes.setdefault(moment.timestamp(), [0, 0, 0])
                for at, amount in enumerate((take.cores, take.memory, take.gpus)):
                    step[at] += sign * amount
        self.times = [0.0, *sorted(changes)]
        self.cores = [sum(node.cores for node in nodes)]
        self.memory = [sum(node.memory for node in nodes)]
        self.gpus = [sum(node.gpus for node in nodes)]
        for time in self.times[1:]:
            for free, more in zip((self.cores, self.memory, self.gpus), changes[time], strict=True):
                free.append(free[-1] + more)

    def earliest(self, job: Wish) -> float | None:
        """The earliest start at which the pool has enough for the whole time."""
        for window in job.windows:
            found = self._inside(job, window.start.timestamp(), window.end.timestamp())
            if found is not None:
                return found
        return None

    def _inside(self, job: Wish, begin: float, limit: float) -> float | None:
        shape, count, span = job.shape, job.nodes, job.duration.total_seconds()
        need_cores, need_memory, need_gpus = count * shape.cores, count * shape.memory, count * shape.gpus
        times, cores, memory, gpus = self.times, self.cores, self.memory, self.gpus
        last = len(times) - 1
        at = bisect_right(times, begin) - 1
        until = begin + span
        while True:
            if cores[at] < need_cores or memory[at] < need_memory or gpus[at] < need_gpus:
                if at == last or times[at + 1] >= limit:
                    return None
                begin = times[at + 1]
                until = begin + span
            if at == last or times[at + 1] >= until:
                return begin
            at += 1


@dataclass(frozen=True)
class Measured:
    """What one size of calendar gave, in microseconds."""

    earliest: float
    pooled: float
    wide: float  # the same queries, each with one window of two weeks
    take: float
    release: float
    busy: float  # the part of all cores that is booked while the jobs arrive
    later: float  # the part of the queries whose answer is not the window's start
    none: float  # the part of the queries that had no answer
    megabytes: float  # that the process grew by while it was built


def resident() -> float:
    """The megabytes of memory that this process has."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(count: int, size: Size) -> Measured:
    """Build a calendar of so many bookings and ask it, take from it and release."""
    before = resident()
    calendar = Calendar(cluster())
    begin, clock, booked = build(count, calendar, size.of(WARM_UP))
    queries = size.of(QUERIES)
    megabytes = resident() - before
    pooled = Pooled(calendar.nodes, booked)
    span = clock - begin
    cores = sum(node.cores for node in calendar.nodes)
    inside = sum((min(t.end, clock) - max(t.start, begin)).total_seconds() * t.cores for t in booked if t.start < clock)
    dice = random.Random(1)
    jobs = [wish(dice, begin + span * dice.random()) for _ in range(queries)]
    gc.collect()
    gc.disable()
    began = process_time()
    slots = [calendar.earliest(job.shape, job.nodes, job.duration, job.windows) for job in jobs]
    earliest = process_time() - began
    began = process_time()
    for job in jobs:
        pooled.earliest(job)
    sweep = process_time() - began
    began = process_time()
    for job in jobs:
        first = job.windows[0].start
        calendar.earliest(job.shape, job.nodes, job.duration, [Window(first, first + timedelta(days=14))])
    wide = process_time() - began
    found = [(f"new-{n}", takes(job, slot)) for n, (job, slot) in enumerate(zip(jobs, slots, strict=True)) if slot]
    taking = releasing = 0.0
    for key, wanted in found:
        began = process_time()
        calendar.take(key, wanted)
        between = process_time()
        calendar.release(key)
        releasing += process_time() - between
        taking += between - began
    gc.enable()
    return Measured(
        earliest=earliest / queries * 1e6,
        pooled=sweep / queries * 1e6,
        wide=wide / queries * 1e6,
        take=taking / len(found) * 1e6,
        release=releasing / len(found) * 1e6,
        busy=inside / cores / span.total_seconds(),
        later=sum(slot is not None and slot.start > job.windows[0].start for job, slot in zip(jobs, slots, strict=True))
        / queries,
        none=sum(slot is None for slot in slots) / queries,
        megabytes=megabytes,
    )


def run(size: Size = WHOLE) -> list[Row]:
    """Measure at each size; goals are held at the largest. Times are of the processor, since the machine is shared."""
    rows: list[Row] = []
    counts = [size.of(count) for count in SIZES]
    results = {count: measure(count, size) for count in counts}
    for count, got in results.items():
        final = count == counts[-1]
        many = f"{count:,} bookings:"
        rows += [
            Row(f"{many} cores booked", f"{got.busy:.0%}"),
            Row(f"{many} answers later than first asked, and none", f"{got.later:.0%}, {got.none:.0%}"),
            Row(f"{many} memory", f"{got.megabytes:.0f} MB"),
            Row(f"{many} pooled sweep", f"{got.pooled:.0f} µs"),
            Row(f"{many} earliest", f"{got.earliest:.0f} µs"),
            Row(f"{many} earliest, all windows two weeks wide", f"{got.wide:.0f} µs"),
            _goal(f"{many} earliest ÷ pooled sweep", got.earliest / got.pooled, 5, "×", final),
            _goal(f"{many} take", got.take, 100, "µs", final),
            _goal(f"{many} release", got.release, 100, "µs", final),
        ]
    least, most = results[counts[0]], results[counts[-1]]
    for what, small, large in (
        ("growth of earliest", least.earliest, most.earliest),
        ("growth, all windows two weeks wide", least.wide, most.wide),
    ):
        growth = math.log(large / small) / math.log(counts[-1] / counts[0])
        rows.append(Row(what, f"n^{growth:.2f}", "≤ n^0.30", growth <= 0.3))
    return rows


def _goal(what: str, figure: float, most: float, unit: str, final: bool) -> Row:
    shown = f"{figure:.1f} {unit}" if figure < 10 else f"{figure:.0f} {unit}"
    return Row(what, shown, f"≤ {most:.0f} {unit}" if final else "", figure <= most if final else None)
