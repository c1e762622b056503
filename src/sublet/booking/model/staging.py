"""How long it takes until all data of a session is there: as it was predicted, and as it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import reduce

from sublet.kernel.texts import describe_duration

NO_TIME = timedelta(0)
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Spread:
    """A length of time that is not known exactly: in nine of ten cases it is no longer than `high`."""

    low: timedelta = NO_TIME
    likely: timedelta = NO_TIME
    high: timedelta = NO_TIME

    def __add__(self, other: Spread) -> Spread:
        """One after another."""
        return Spread(self.low + other.low, self.likely + other.likely, self.high + other.high)

    def __or__(self, other: Spread) -> Spread:
        """Beside one another."""
        return Spread(max(self.low, other.low), max(self.likely, other.likely), max(self.high, other.high))


def exactly(length: timedelta) -> Spread:
    """A length that somebody is sure of."""
    return Spread(length, length, length)


def one_after_another(lengths: Iterable[Spread]) -> Spread:
    """What they take together, in turn."""
    return reduce(Spread.__add__, lengths, Spread())


def side_by_side(lengths: Iterable[Spread]) -> Spread:
    """What they take together, at the same time."""
    return reduce(Spread.__or__, lengths, Spread())


@dataclass(frozen=True, slots=True)
class StagingEstimate:
    """How long staging takes on one platform."""

    time: Spread = Spread()
    items: Mapping[str, timedelta] = field(default_factory=dict)  # of each item of data: no longer than this
    there: tuple[str, ...] = ()  # the items that the platform has already
    samples: int = 0  # measured transfers that this rests on; none: it is a guess

    @property
    def lead(self) -> timedelta:
        """How long before its start a session's staging begins, so that it is done in time; a moment is no time."""
        return self.time.high if self.time.high >= SECOND else NO_TIME


NOTHING_TO_STAGE = StagingEstimate()


def describe_spread(time: Spread) -> str:
    """`40 s (25 s to 80 s)`, in whole seconds from one on."""
    low, likely, high = (_read(length) for length in (time.low, time.likely, time.high))
    return likely if low == high else f"{likely} ({low} to {high})"


def _read(length: timedelta) -> str:
    return "under 1 s" if length < SECOND else describe_duration(round(length / SECOND) * SECOND, units=2)


def describe_staging(estimate: StagingEstimate, took: timedelta | None) -> str:
    """What was predicted, and what came of it: `predicted 40 s (25 s to 80 s), took 38 s`; nothing of a moment."""
    if not (estimate.lead or estimate.there or (took or NO_TIME) >= SECOND):
        return ""
    words = [f"predicted {describe_spread(estimate.time)}"] if estimate.items else []
    if len(estimate.items) > len(estimate.there) and not estimate.samples:
        words[0] += ", a guess"
    if took is not None:
        words.append(f"took {_read(took)}")
    if estimate.there:
        words.append(f"{', '.join(estimate.there)} was there already")
    return ", ".join(words)
