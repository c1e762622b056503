"""When a job in a shared queue will start, predicted from the most similar earlier jobs.

With a track record (20 or more starts of the same queue and size class within 90 days), the fifty most similar starts
are used: by the wait that the scheduler planned, the requested length, and the hour of the day. p10, p50 and p90 are
the tenth, fiftieth and ninetieth percentile of their waits. Without a record, p50 is the scheduler's plan; p10 is now,
because a job may start as soon as others end early; and p90 is as far after the plan as the plan is after now, but at
least an hour. That is a convention and not statistics, and `track` says so. docs/estimates.md shows how well this
works on real workloads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nsmallest
from math import log1p

NO_TIME = timedelta(0)
ENOUGH = 20  # samples; fewer are no track record
NEAREST = 50  # the most similar samples, which are used
MOST = 2000  # samples of a platform, the newest
OF_LENGTH = 0.5  # the distance for an e-fold of the requested length; one of the planned wait is 1
OF_HOUR = 0.25 / 6  # the distance for an hour of the day
RECENT = timedelta(days=90)
LEAST_DOUBT = timedelta(hours=1)
SMALL = 8  # cores; such a small job fits into gaps that others can't use
_SIZES = ((4, "2-4 nodes"), (16, "5-16 nodes"), (64, "17-64 nodes"), (256, "65-256 nodes"))


@dataclass(frozen=True, slots=True)
class Sample:
    """One job that started: when it was planned to, and when it did."""

    queue: str
    nodes: int
    cores: int  # per node
    planned: datetime
    actual: datetime
    at: datetime  # when the plan was made, or the earliest start that was requested
    length: timedelta = NO_TIME  # as requested; 0: not known


@dataclass(frozen=True, slots=True)
class Prediction:
    """An interval in which a start is likely, and what that is based on."""

    p10: datetime
    p50: datetime
    p90: datetime
    samples: int
    track: str  # in words


@dataclass(frozen=True, slots=True)
class Track:
    """How well plans for one queue and size class came true; with too few starts, only their number."""

    queue: str
    size: str
    samples: int
    p10: timedelta | None = None  # how much later than planned; negative: sooner
    p50: timedelta | None = None
    p90: timedelta | None = None


def size_class(nodes: int, cores: int) -> str:
    """Return the class of jobs that wait alike: `1 node, up to 8 cores`, `1 node`, `2-4 nodes`, …."""
    if nodes == 1:
        return f"1 node, up to {SMALL} cores" if cores <= SMALL else "1 node"
    return next((name for most, name in _SIZES if nodes <= most), "over 256 nodes")


def predict(
    samples: Iterable[Sample],
    queue: str,
    size: str,
    planned: datetime,
    now: datetime,
    length: timedelta = NO_TIME,
    begin: datetime | None = None,
) -> Prediction:
    """Predict when a job of this queue and size class, planned for then, will start; never before now.

    `begin` is the earliest start that was requested.
    """
    alike = [
        sample
        for sample in samples
        if sample.queue == queue and now - RECENT <= sample.at <= now and size_class(sample.nodes, sample.cores) == size
    ]
    count, plan, base = len(alike), max(planned, now), max(begin or now, now)
    if count < ENOUGH:
        seen = f"{count} of the {ENOUGH} starts that make one" if count else "no start of this kind was seen"
        return Prediction(now, plan, plan + max(plan - now, LEAST_DOUBT), count, f"no track record: {seen}")
    waits = sorted(sample.actual - sample.at for sample in find_nearest(alike, planned - base, length, base))
    p10, p50, p90 = (max(now, base + _percentile(waits, part)) for part in (10, 50, 90))
    return Prediction(p10, p50, p90, count, f"{count} starts in {RECENT.days} days")


def find_nearest(samples: Iterable[Sample], wait: timedelta, length: timedelta, at: datetime) -> list[Sample]:
    """Return the samples most like a job with this planned wait and length at this time; of equals the newest."""
    planned, asked, hour = _scale(wait), _scale(length), at.hour

    def measure(sample: Sample) -> tuple[float, float, timedelta]:
        apart = (sample.at.hour - hour) % 24
        far = abs(_scale(sample.planned - sample.at) - planned) + OF_HOUR * min(apart, 24 - apart)
        if length and sample.length:
            far += OF_LENGTH * abs(_scale(sample.length) - asked)
        return far, -sample.at.timestamp(), sample.actual - sample.at

    return nsmallest(NEAREST, samples, key=measure)


def _scale(length: timedelta) -> float:
    """Return a length on a log scale, so that lengths compare by ratio; under a minute they are nearly equal."""
    return log1p(max(length.total_seconds(), 0.0) / 60)


def tracks(samples: Iterable[Sample], now: datetime) -> tuple[Track, ...]:
    """Return the whole track record, by queue and from small to large."""
    late: dict[tuple[str, str], list[timedelta]] = {}
    for sample in sorted(samples, key=lambda sample: (sample.queue, sample.nodes, sample.cores)):
        if now - RECENT <= sample.at <= now:
            kind = (sample.queue, size_class(sample.nodes, sample.cores))
            late.setdefault(kind, []).append(sample.actual - sample.planned)
    return tuple(_track(*kind, sorted(seen)) for kind, seen in late.items())


def _track(queue: str, size: str, late: Sequence[timedelta]) -> Track:
    if len(late) < ENOUGH:
        return Track(queue, size, len(late))
    return Track(queue, size, len(late), *(_percentile(late, part) for part in (10, 50, 90)))


def _percentile(ordered: Sequence[timedelta], part: int) -> timedelta:
    """Return a percentile, interpolated between the two nearest values."""
    below, rest = divmod((len(ordered) - 1) * part, 100)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * rest / 100
