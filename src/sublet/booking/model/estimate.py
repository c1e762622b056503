"""When a job in someone else's queue will start: the scheduler's plan, corrected by how its plans came true before.

With a track record (20 starts or more of the same queue and size within 90 days), p10, p50 and p90 are the plan plus
the tenth, fiftieth and ninetieth percentile of *actual − planned*. Without one there is nothing to correct by: p50 is
the plan as it stands; p10 is now, because a job may start as soon as others end early; p90 is as far behind the plan as
now is before it, and an hour at least. That is a convention and no statistics, and `track` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

ENOUGH = 20  # samples; fewer are no track record
RECENT = timedelta(days=90)
LEAST_DOUBT = timedelta(hours=1)
SMALL = 8  # cores: a job that takes so few of a node slips into gaps that others can't use
_SIZES = ((4, "2-4 nodes"), (16, "5-16 nodes"), (64, "17-64 nodes"), (256, "65-256 nodes"))


@dataclass(frozen=True, slots=True)
class Sample:
    """One job that started: when it was planned to, and when it did."""

    queue: str
    nodes: int
    cores: int  # per node
    planned: datetime
    actual: datetime
    at: datetime  # when the plan was made


@dataclass(frozen=True, slots=True)
class Prediction:
    """An interval in which a start is likely, and what that rests on."""

    p10: datetime
    p50: datetime
    p90: datetime
    samples: int
    track: str  # in words


@dataclass(frozen=True, slots=True)
class Track:
    """How plans of one queue and size class came true; with too few starts there is nothing to say but how many."""

    queue: str
    size: str
    samples: int
    p10: timedelta | None = None  # how much later than planned; negative: sooner
    p50: timedelta | None = None
    p90: timedelta | None = None


def size_class(nodes: int, cores: int) -> str:
    """The class of jobs that wait alike: `1 node, up to 8 cores`, `1 node`, `2-4 nodes`, …."""
    if nodes == 1:
        return f"1 node, up to {SMALL} cores" if cores <= SMALL else "1 node"
    return next((name for most, name in _SIZES if nodes <= most), "over 256 nodes")


def predict(samples: Iterable[Sample], queue: str, size: str, planned: datetime, now: datetime) -> Prediction:
    """When a job of this queue and size class, planned for then, will start; never before now."""
    late = sorted(
        sample.actual - sample.planned
        for sample in samples
        if sample.queue == queue and now - RECENT <= sample.at <= now and size_class(sample.nodes, sample.cores) == size
    )
    count, plan = len(late), max(planned, now)
    if count < ENOUGH:
        seen = f"{count} of the {ENOUGH} starts that make one" if count else "no start of this kind was seen"
        return Prediction(now, plan, plan + max(plan - now, LEAST_DOUBT), count, f"no track record: {seen}")
    p10, p50, p90 = (max(now, planned + _percentile(late, part)) for part in (10, 50, 90))
    return Prediction(p10, p50, p90, count, f"{count} starts in {RECENT.days} days")


def tracks(samples: Iterable[Sample], now: datetime) -> tuple[Track, ...]:
    """The whole record, queue by queue and from small to large."""
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
    """Between the two values nearest to it, in proportion."""
    below, rest = divmod((len(ordered) - 1) * part, 100)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * rest / 100
