"""How long staging a session's data takes: the prediction, and the actual time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import reduce

from sublet.kernel.texts import describe_length

NO_TIME = timedelta(0)
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Spread:
    """An uncertain length of time: in nine of ten cases it is no longer than `high`."""

    low: timedelta = NO_TIME
    likely: timedelta = NO_TIME
    high: timedelta = NO_TIME

    def __add__(self, other: Spread) -> Spread:
        """Return how long both take, one after the other."""
        return Spread(self.low + other.low, self.likely + other.likely, self.high + other.high)

    def __or__(self, other: Spread) -> Spread:
        """Return how long both take, side by side."""
        return Spread(max(self.low, other.low), max(self.likely, other.likely), max(self.high, other.high))


def exactly(length: timedelta) -> Spread:
    """Return a spread without uncertainty."""
    return Spread(length, length, length)


def one_after_another(lengths: Iterable[Spread]) -> Spread:
    """Return how long all take, one after another."""
    return reduce(Spread.__add__, lengths, Spread())


def side_by_side(lengths: Iterable[Spread]) -> Spread:
    """Return how long all take, side by side."""
    return reduce(Spread.__or__, lengths, Spread())


@dataclass(frozen=True, slots=True)
class StagingEstimate:
    """How long staging takes on one platform."""

    time: Spread = Spread()
    items: Mapping[str, timedelta] = field(default_factory=dict)  # data item → how long it takes at most
    there: tuple[str, ...] = ()  # the items that the platform has already
    samples: int = 0  # measured transfers that it is based on; 0: a guess

    @property
    def lead(self) -> timedelta:
        """How long before the start staging must begin; 0 if it takes less than a second."""
        return self.time.high if self.time.high >= SECOND else NO_TIME


NOTHING_TO_STAGE = StagingEstimate()


def describe_spread(time: Spread) -> str:
    """Describe a spread in whole seconds, as `40 s (25 s to 80 s)`."""
    low, likely, high = (describe_length(length) for length in (time.low, time.likely, time.high))
    return likely if low == high else f"{likely} ({low} to {high})"


def describe_staging(estimate: StagingEstimate, took: timedelta | None) -> str:
    """Describe predicted and actual staging, as `predicted 40 s (25 s to 80 s), took 38 s`; empty under a second."""
    if not (estimate.lead or estimate.there or (took or NO_TIME) >= SECOND):
        return ""
    words = [f"predicted {describe_spread(estimate.time)}"] if estimate.items else []
    if len(estimate.items) > len(estimate.there) and not estimate.samples:
        words[0] += ", a guess"
    if took is not None:
        words.append(f"took {describe_length(took)}")
    if estimate.there:
        words.append(f"{', '.join(estimate.there)} was there already")
    return ", ".join(words)
