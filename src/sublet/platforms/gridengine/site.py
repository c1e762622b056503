"""The survey of a Grid Engine site, and the planned use of its nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.booking.model.calendar import Calendar
from sublet.booking.model.offer import Take
from sublet.booking.model.request import Window
from sublet.booking.model.shape import Shape
from sublet.platforms.batch.planning import AHEAD, SitePlan
from sublet.platforms.batch.site import SiteNode
from sublet.platforms.gridengine import readers as read
from sublet.platforms.gridengine.rows import PlannedJob

MOST_WAITING = 500  # other people's jobs that are planned before ours


@dataclass(frozen=True, slots=True)
class GridSite:
    """The result of a survey."""

    nodes: tuple[SiteNode, ...]
    queues: tuple[read.GridQueue, ...]
    environments: tuple[read.ParallelEnvironment, ...]
    complexes: Mapping[str, read.Complex]


def read_site(answers: Mapping[str, str]) -> GridSite:
    """Return the site as its commands describe it."""
    complexes = read.read_complexes(answers.get("complexes", ""))
    values = read.read_host_values(answers.get("hosts", ""))
    return GridSite(
        nodes=read.read_nodes(answers.get("nodes", ""), values, complexes),
        queues=read.read_queues(answers.get("queues", ""), read.find_closed_queues(answers.get("nodes", ""))),
        environments=read.read_environments(answers.get("environments", "")),
        complexes=complexes,
    )


def plan_site(
    nodes: Sequence[SiteNode], jobs: Sequence[PlannedJob], reserved: Sequence[Take], now: datetime
) -> SitePlan:
    """Return when nodes are free: running jobs end at their limits, and queued ones start as soon as there is room."""
    takes = [_take_running(job, job.start, now) for job in jobs if job.host and job.start]
    takes += reserved
    here = [each.node for each in nodes if each.here]
    calendar = Calendar(here)
    calendar.put("known", takes)
    for number, job in enumerate([job for job in jobs if not job.host][:MOST_WAITING]):
        slot = calendar.earliest(Shape(job.slots, 0), 1, job.time, [Window(now, now + AHEAD)])
        if slot:
            wait = [Take(node, slot.start, slot.start + job.time, cores=job.slots) for node in slot.nodes]
            calendar.put(f"waiting {number}", wait)
            takes += wait
    return SitePlan(tuple(nodes), tuple(takes))


def _take_running(job: PlannedJob, start: datetime, now: datetime) -> Take:
    """Return what a running job takes; one that is over its limit is assumed to end in a minute."""
    return Take(job.host, start, max(start + job.time, now + timedelta(minutes=1)), cores=job.slots)
