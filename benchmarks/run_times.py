"""Predicted run times, tried on a real workload, as `python -m benchmarks.backtest` does.

At each submission answers are given with what was known then, and compared with what the job took: the time limit
that was asked for, what jobs of like size took in the last week, those of the person's runs that began at the most
similar hours of the week, and Sublet's own, out of the person's runs.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush, nsmallest

from benchmarks.hours import count_apart, spread_of
from benchmarks.scores import DAY, WARM, Score, Spread3, describe
from benchmarks.workloads import TracedJob, Workload
from sublet.archive.model.habits import KEPT
from sublet.booking.model.run_time import ENOUGH, NEAREST, Run, find_doubt, find_percentile, predict_run, widen

WEEK = 7 * DAY
METHODS = ("time limit", "last week", "hour of week", "sublet")
LIMITED = "time limit"


@dataclass
class RunRecord:
    """What had ended by then: the newest runs of each person and program, and all of the last week by size."""

    own: dict[tuple[int, int], deque[Run]] = field(default_factory=lambda: defaultdict(lambda: deque(maxlen=KEPT)))
    week: dict[int, deque[tuple[float, float]]] = field(default_factory=lambda: defaultdict(deque))
    hours: dict[tuple[int, int], deque[tuple[datetime, float]]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=KEPT))
    )

    def add(self, job: TracedJob, began: datetime) -> None:
        """One that ended."""
        self.own[job.person, job.program].append(_as_run(job))
        self.hours[job.person, job.program].append((began, job.run))
        self.week[job.processors.bit_length()].append((job.start + job.run, job.run))

    def recall_week(self, job: TracedJob) -> Spread3:
        """What jobs of this size took that ended in the last seven days."""
        known = self.week[job.processors.bit_length()]
        while len(known) > 1 and known[0][0] < job.submit - WEEK:
            known.popleft()
        took = sorted(run for _, run in known) or [job.limit]
        return find_percentile(took, 0.1), find_percentile(took, 0.5), find_percentile(took, 0.9)

    def recall_hour(self, job: TracedJob, now: datetime) -> Spread3:
        """What the person's runs of it took that began at the most similar hours of the week."""
        known = self.hours[job.person, job.program]
        alike = nsmallest(NEAREST // 2, known, key=lambda each: count_apart(each[0], now))
        return spread_of([run for _, run in alike])


def judge(workload: Workload, every: int = 1) -> tuple[dict[str, Score], int]:
    """Each method on each (or every nth) job of which Sublet says something; and of how many it says nothing."""
    has_limits = any(job.limit for job in workload.jobs)
    scores = {name: Score() for name in METHODS if has_limits or name != LIMITED}
    first, last = workload.jobs[0].submit, workload.jobs[-1].submit
    warm, silent = min(WARM, (last - first) / 3), 0
    for number, (job, record) in enumerate(_follow(workload)):
        if job.submit - first < warm or number % every:
            continue
        runs = tuple(record.own[job.person, job.program])
        if len(runs) < ENOUGH:
            silent += 1
            continue
        if has_limits:
            scores[LIMITED].add((job.limit,) * 3, job.run)
        scores["last week"].add(_within(job, record.recall_week(job)), job.run)
        hour = record.recall_hour(job, workload.time(job.submit))
        scores["hour of week"].add(_within(job, hour), job.run)
        scores["sublet"].add(_within(job, widen(predict_run(runs, _as_run(job)), find_doubt(runs))), job.run)
    return scores, silent


def _follow(workload: Workload) -> Iterator[tuple[TracedJob, RunRecord]]:
    """Each job at its submission, and what had ended by then."""
    record, ending = RunRecord(), list[tuple[float, int]]()
    for number, job in enumerate(workload.jobs):
        while ending and ending[0][0] <= job.submit:
            ended = workload.jobs[heappop(ending)[1]]
            record.add(ended, workload.time(ended.start))
        yield job, record
        heappush(ending, (job.start + job.run, number))


def _as_run(job: TracedJob) -> Run:
    return Run(job.run, size=job.processors, limit=job.limit)


def _within(job: TracedJob, spread: Spread3) -> Spread3:
    """None runs longer than it is allowed."""
    low, middle, high = (min(value, job.limit or value) for value in spread)
    return low, middle, high


def describe_runs(workload: Workload, every: int = 1) -> Iterator[str]:
    """A table, and what was not judged."""
    scores, silent = judge(workload, every)
    yield from describe(scores)
    share = silent / max(silent + scores["sublet"].count, 1)
    yield f"\nNothing is said of {share:.0%} of the jobs: fewer than {ENOUGH} runs of them are known."
