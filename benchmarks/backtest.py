"""Predicted starts and run times, tried on a real workload: `python -m benchmarks.backtest TRACE.swf`.

At each submission of the trace answers are given with what was known then, and compared with what happened: the plan
of a scheduler with backfill, the waits of the last week, those at this hour of the week (`hours.py`), and Sublet's own
prediction. Of run times they are the time limit, what ran in the last week, the person's runs that were started at
the most similar hours of the week, and Sublet's own (`run_times.py`).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from heapq import heappop, heappush
from pathlib import Path

from benchmarks.hours import predict_by_week, recall_hour
from benchmarks.run_times import describe_runs
from benchmarks.scores import WARM, Score, Spread3, describe
from benchmarks.workloads import Workload, plan_starts, read_workload
from sublet.archive.model.habits import quantile
from sublet.booking.model.estimate import MOST, Sample, predict, size_class

METHODS = ("plan", "last week", "hour of week", "sublet by week", "sublet")


def judge(workload: Workload, every: int = 1) -> dict[str, Score]:
    """Each method on each (or every nth) job after the first weeks."""
    scores = {name: Score() for name in METHODS}
    record: dict[str, list[Sample]] = defaultdict(list)
    first, last = workload.jobs[0].submit, workload.jobs[-1].submit
    warm = min(WARM, (last - first) / 3)
    for number, (submit, planned, wait, sample) in enumerate(_follow(workload, record)):
        if submit - first < warm or number % every:
            continue
        known = record[size_class(sample.nodes, sample.cores)][-MOST:]
        scores["plan"].add((planned,) * 3, wait)
        scores["last week"].add(_recall_week(known, sample), wait)
        scores["hour of week"].add(recall_hour(known, sample), wait)
        scores["sublet by week"].add(predict_by_week(known, sample), wait)
        scores["sublet"].add(_predict(known, sample), wait)
    return scores


def _follow(workload: Workload, record: dict[str, list[Sample]]) -> Iterator[tuple[float, float, float, Sample]]:
    """Each job at its submission; the record has what had started by then."""
    starting: list[tuple[float, int, Sample]] = []
    for number, (job, plan) in enumerate(zip(workload.jobs, plan_starts(workload), strict=True)):
        while starting and starting[0][0] <= job.submit:
            started = heappop(starting)[2]
            record[size_class(started.nodes, started.cores)].append(started)
        at, nodes, cores = workload.time(job.submit), max(job.processors // 8, 1), min(job.processors, 8)
        times = (workload.time(plan), workload.time(job.start), at)
        sample = Sample("queue", nodes, cores, *times, timedelta(seconds=job.asked))
        yield job.submit, plan - job.submit, job.wait, sample
        heappush(starting, (job.start, number, sample))


def _recall_week(known: Sequence[Sample], sample: Sample) -> Spread3:
    recent = [each for each in known if each.at >= sample.at - timedelta(days=7)] or known
    waits = sorted((each.actual - each.at).total_seconds() for each in recent) or [0.0]
    return quantile(waits, 0.1), quantile(waits, 0.5), quantile(waits, 0.9)


def _predict(known: Sequence[Sample], sample: Sample) -> Spread3:
    size = size_class(sample.nodes, sample.cores)
    found = predict(known, "queue", size, sample.planned, sample.at, sample.length)
    low, middle, high = ((time - sample.at).total_seconds() for time in (found.p10, found.p50, found.p90))
    return low, middle, high


def describe_all(trace: Path, every: int = 1) -> Iterator[str]:
    """The tables of a trace: starts, where it says how long jobs waited, and run times."""
    if (workload := read_workload(trace)).jobs:
        yield from ("Starts", *describe(judge(workload, every)), "")
    yield from ("Run times", *describe_runs(read_workload(trace, waits=False), every))


if __name__ == "__main__":
    name, *rest = sys.argv[1:]
    for line in describe_all(Path(name), int(rest[0]) if rest else 1):
        print(line)
