"""What a survey of a Grid Engine site says, and what its nodes are planned for."""

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

MOST_WAITING = 500  # jobs of others that are planned before one of ours


@dataclass(frozen=True, slots=True)
class GridSite:
    """What a survey found."""

    nodes: tuple[SiteNode, ...]
    queues: tuple[read.GridQueue, ...]
    environments: tuple[read.ParallelEnvironment, ...]
    complexes: Mapping[str, read.Complex]


def read_site(answers: Mapping[str, str]) -> GridSite:
    """The site as its commands tell it."""
    complexes = read.read_complexes(answers.get("complexes", ""))
    values = read.read_host_values(answers.get("hosts", ""))
    return GridSite(
        nodes=read.read_nodes(answers.get("nodes", ""), values, complexes),
        queues=read.read_queues(answers.get("queues", "")),
        environments=read.read_environments(answers.get("environments", "")),
        complexes=complexes,
    )


def plan_site(
    nodes: Sequence[SiteNode], jobs: Sequence[PlannedJob], reserved: Sequence[Take], now: datetime
) -> SitePlan:
    """When the nodes are free: what runs ends at its limit, what waits starts in turn as soon as there is room."""
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
    """One that is over its limit is as good as gone, but not yet."""
    return Take(job.host, start, max(start + job.time, now + timedelta(minutes=1)), cores=job.slots)
