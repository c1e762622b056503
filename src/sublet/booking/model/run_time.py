"""How long a session will run, predicted from the most similar earlier runs of the same program.

A time limit says little, because people ask for several times what they need. So the limit, like the size, the
platform and the queue, only helps to find similar runs; the prediction is percentiles of what those took. Only
successful runs count. docs/estimates.md shows how well this works on real workloads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nsmallest
from math import floor, log
from typing import Literal

from sublet.kernel.texts import describe_length

ENOUGH = 5  # runs; fewer give no estimate
NEAREST = 30  # the most similar runs, which are used
TRIED = 20  # the newest runs, which are predicted from those before them
INSIDE = 0.8  # the share of runs that should be inside the spread
MOST_DOUBT = 2.0  # the largest factor that widens a spread: a wider one would say nothing
LEAST = 1.0  # seconds; shorter runs count as equal
OF_SIZE = 1.0  # the distance for an e-fold of the cores
OF_LIMIT = 1.0  # the distance for an e-fold of the time limit
OF_PLATFORM = 1.0  # the distance for another platform
OF_QUEUE = 0.25  # the distance for another queue of the same platform
OF_AGE = 0.02  # the distance for each newer run
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
Whose = Literal["own", "all"]


@dataclass(frozen=True, slots=True)
class Run:
    """One earlier run: what it used, and how it was run."""

    wall: float  # seconds
    cores: float = 0.0  # on average, over all its nodes; 0: not known
    peak_memory: int = 0  # bytes, on one node; 0: not known
    platform: str = ""
    queue: str = ""
    size: int = 0  # the cores that it had, over all its nodes; 0: not known
    limit: float = 0.0  # seconds that it was allowed; 0: not known


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """How long a session will run: in eight of ten cases between `low` and `high`."""

    low: timedelta
    likely: timedelta
    high: timedelta
    runs: int  # known runs of the program
    program: str = ""
    whose: Whose = "own"

    def describe(self) -> str:
        """Describe the estimate, as `12 to 19 min, by your last 34 runs of sim.py`."""
        whose = "your" if self.whose == "own" else "everybody's"
        return f"{describe_range(self.low, self.high)}, by {whose} last {self.runs} runs of {self.program}"

    def find_end(self, start: datetime) -> datetime:
        """Return by when a session with this start will probably end, rounded up to the minute."""
        end = start + self.high
        whole = end.replace(second=0, microsecond=0)
        return whole if whole == end else whole + MINUTE


@dataclass(frozen=True, slots=True)
class RunHistory:
    """The newest runs of a program, the oldest first, and how far off predictions of them were."""

    runs: tuple[Run, ...] = ()
    program: str = ""
    whose: Whose = "own"
    doubt: float = 1.0  # the factor by which the spread of the runs is widened

    def estimate(self, platform: str, queue: str, size: int, limit: timedelta) -> RunEstimate | None:
        """Estimate how long the next run will take there, at most its limit; None if too little is known."""
        if len(self.runs) < ENOUGH:
            return None
        like = Run(0.0, 0.0, 0, platform, queue, size, limit.total_seconds())
        low, likely, high = widen(predict_run(self.runs, like), self.doubt)
        first, middle, last = (min(timedelta(seconds=seconds), limit) for seconds in (low, likely, high))
        return RunEstimate(first, middle, last, len(self.runs), self.program, self.whose)


UNKNOWN = RunHistory()


def make_history(runs: Sequence[Run], program: str, whose: Whose = "own") -> RunHistory:
    """Build the history of these runs, with the doubt in predictions of the newest from those before them."""
    return RunHistory(tuple(runs), program, whose, find_doubt(runs))


def find_doubt(runs: Sequence[Run]) -> float:
    """Return the factor, at most 2, by which spreads must be wider to contain eight of ten of the newest runs."""
    misses = []
    for number in range(max(ENOUGH, len(runs) - TRIED), len(runs)):
        low, _, high = predict_run(runs[:number], runs[number])
        took = max(runs[number].wall, LEAST)
        misses.append(max(max(low, LEAST) / took, took / max(high, LEAST), 1.0))
    return min(find_percentile(sorted(misses), INSIDE), MOST_DOUBT) if len(misses) >= ENOUGH else 1.0


def widen(spread: tuple[float, float, float], doubt: float) -> tuple[float, float, float]:
    """Widen a spread on both sides by a factor."""
    low, likely, high = spread
    return low / doubt, likely, high * doubt


def predict_run(runs: Sequence[Run], like: Run) -> tuple[float, float, float]:
    """Return the 10th, 50th and 90th percentile of the times of the most similar runs, in seconds."""
    ages = range(len(runs) - 1, -1, -1)
    nearest = nsmallest(NEAREST, zip(ages, runs, strict=True), key=lambda each: _measure(each[0], each[1], like))
    took = sorted(run.wall for _, run in nearest)
    return find_percentile(took, 0.1), find_percentile(took, 0.5), find_percentile(took, 0.9)


def _measure(age: int, run: Run, like: Run) -> tuple[float, int]:
    far = OF_AGE * age
    if run.size and like.size:
        far += OF_SIZE * abs(log(run.size / like.size))
    if run.limit and like.limit:
        far += OF_LIMIT * abs(log(run.limit / like.limit))
    if run.platform != like.platform:
        far += OF_PLATFORM
    elif run.queue != like.queue:
        far += OF_QUEUE
    return far, age


def find_percentile(ordered: Sequence[float], part: float) -> float:
    """Return the value that another one stays below with this probability; at most the largest of the values."""
    at = min(max(part * (len(ordered) + 1) - 1, 0.0), len(ordered) - 1.0)
    low = floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def describe_range(low: timedelta, high: timedelta) -> str:
    """Describe a range, as `12 to 19 min`, `under 1 s` or `40 s to 1 h 20 min`."""
    first, last = (describe_length(_round_up(length)) for length in (low, high))
    if first == last:
        return first
    if len(first.split()) == len(last.split()) == 2 and first.split()[1] == last.split()[1]:
        return f"{first.split()[0]} to {last}"
    return f"{first} to {last}"


def _round_up(length: timedelta) -> timedelta:
    """Round up to seconds, from ten minutes on to minutes; less than a second stays what it is."""
    unit = SECOND if length < 10 * MINUTE else MINUTE
    return length if length < SECOND else -(-length // unit) * unit
