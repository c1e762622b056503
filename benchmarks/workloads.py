"""Workloads in the Standard Workload Format, and what a backfilling scheduler would plan at each submission."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from pathlib import Path

FIELDS = 18  # of a line; others may follow
DEEPEST = 200  # jobs of the queue that a plan looks at, as schedulers do


@dataclass(frozen=True, slots=True)
class TracedJob:
    """One job of a trace; times in seconds since the trace began."""

    submit: float
    wait: float
    run: float
    processors: int
    asked: float  # the time limit; where none is known, what it took
    person: int = -1  # who submitted it; -1: not known
    program: int = -1
    limit: float = 0.0  # the time limit; 0: not known

    @property
    def start(self) -> float:
        """When it started."""
        return self.submit + self.wait


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs in the order in which they were submitted, to so many processors."""

    jobs: tuple[TracedJob, ...]
    processors: int
    began: datetime

    def time(self, seconds: float) -> datetime:
        """A time of the trace, by the clock."""
        return self.began + timedelta(seconds=seconds)


def read_workload(path: Path, *, waits: bool = True) -> Workload:
    """A trace: its jobs that waited, ran and have a size; what asked for less time than it ran asked for that.

    Without `waits`, jobs of which it is not known how long they waited are read too.
    """
    began, processors, jobs = 0, 0, list[TracedJob]()
    for line in path.read_text().splitlines():
        if line.startswith(";"):
            name, _, value = line[1:].partition(":")
            began = int(value) if name.strip() == "UnixStartTime" else began
            processors = int(value) if name.strip() == "MaxProcs" else processors
        elif (job := _read_job(line.split(), waits)) is not None:
            jobs.append(job)
    jobs.sort(key=lambda job: job.submit)
    most = max((job.processors for job in jobs), default=1)
    return Workload(tuple(jobs), processors or most, datetime.fromtimestamp(began, UTC))


def _read_job(fields: list[str], waits: bool) -> TracedJob | None:
    if len(fields) < FIELDS:
        return None
    _, submit, wait, run, used, _, _, processors, asked, _, _, person, _, program, *_ = map(float, fields[:FIELDS])
    size = int(processors if processors > 0 else used)
    if (wait < 0 and waits) or run <= 0 or size <= 0:
        return None
    return TracedJob(submit, max(wait, 0.0), run, size, max(asked, run), int(person), int(program), max(asked, 0.0))


@dataclass(slots=True)
class Profile:
    """Free processors over time, as the time limits of jobs have it."""

    times: list[float]
    free: list[int] = field(default_factory=list)

    def find(self, processors: int, length: float) -> float:
        """The first time from which so many are free for so long."""
        at = 0
        while at < len(self.times):
            end, until = self.times[at] + length, at
            while until < len(self.times) and self.times[until] < end and self.free[until] >= processors:
                until += 1
            if until == len(self.times) or self.times[until] >= end:
                return self.times[at]
            at = until + 1
        return self.times[-1]

    def take(self, start: float, length: float, processors: int) -> None:
        """Let them be taken from a start on."""
        for edge in (start, start + length):
            index = bisect_left(self.times, edge)
            if index == len(self.times) or self.times[index] != edge:
                self.times.insert(index, edge)
                self.free.insert(index, self.free[index - 1])
        for index in range(bisect_left(self.times, start), bisect_left(self.times, start + length)):
            self.free[index] -= processors


def plan_starts(workload: Workload) -> Iterator[float]:
    """For each job, when a scheduler with backfill would have planned it at its submission, by time limits alone.

    What runs and waits is as it was in the trace; everything that waits gets its place before the new job.
    """
    jobs, most = workload.jobs, workload.processors
    running: list[tuple[float, int]] = []  # by their ends
    starting: list[tuple[float, int]] = []
    waiting: dict[int, TracedJob] = {}
    for number, job in enumerate(jobs):
        now = job.submit
        while starting and starting[0][0] <= now:
            start, other = heappop(starting)
            waiting.pop(other, None)
            heappush(running, (start + jobs[other].run, other))
        while running and running[0][0] <= now:
            heappop(running)
        profile = _outline(now, most, (jobs[other] for _, other in running))
        for other_job in list(waiting.values())[:DEEPEST]:
            size = min(other_job.processors, most)
            profile.take(profile.find(size, other_job.asked), other_job.asked, size)
        yield profile.find(min(job.processors, most), job.asked)
        waiting[number] = job
        heappush(starting, (job.start, number))


def _outline(now: float, most: int, running: Iterable[TracedJob]) -> Profile:
    ends = sorted((max(job.start + job.asked, now + 1), job.processors) for job in running)
    profile = Profile([now], [most - sum(size for _, size in ends)])
    for end, size in ends:
        if end == profile.times[-1]:
            profile.free[-1] += size
        else:
            profile.times.append(end)
            profile.free.append(profile.free[-1] + size)
    return profile
