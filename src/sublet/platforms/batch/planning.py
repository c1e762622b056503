"""When a site would have room, out of what its scheduler tells of everybody's jobs and reservations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.booking.model.calendar import Calendar
from sublet.booking.model.offer import Node, Take
from sublet.booking.model.request import Request, Window
from sublet.booking.model.shape import Amounts, Shape
from sublet.booking.model.windows import last_start, windows_of
from sublet.platforms.batch.fitting import HORIZON
from sublet.platforms.batch.site import SiteNode

LEEWAY = timedelta(minutes=2)  # beyond its own time, so that the job can stop itself and tell of it
AHEAD = timedelta(days=30)  # how far a plan is looked at
MOST_RESERVED = 2  # reservations for one request
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class SitePlan:
    """What the nodes of a site are planned for, by cores and GPUs."""

    nodes: tuple[SiteNode, ...]
    takes: tuple[Take, ...] = ()

    def find_start(self, amounts: Amounts, time: timedelta, windows: Sequence[Window]) -> datetime | None:
        """The earliest whole second in these windows from which on there is room for so long."""
        calendar = Calendar([_count_only(each.node) for each in self.nodes if each.here])
        calendar.put("planned", self.takes)
        slot = calendar.earliest(Shape(amounts.shape.cores, 0, amounts.shape.gpus), amounts.nodes, time, windows)
        return round_up(slot.start) if slot else None


def _count_only(node: Node) -> Node:
    """What is looked at in a plan: few schedulers tell how much memory of a node is planned for others."""
    return Node(node.name, node.cores, 0, node.gpus)


def round_up(time: datetime) -> datetime:
    """The next whole second: schedulers count no parts of one."""
    return time.replace(microsecond=0) + (SECOND if time.microsecond else SECOND * 0)


def windows_now(request: Request, now: datetime) -> list[Window]:
    """When it may start if it is submitted now, to a scheduler that starts what it has as soon as it can."""
    soonest = max(now, request.not_before or now)
    if not (request.windows or request.recurring):
        return [Window(soonest, soonest + AHEAD)]
    windows = windows_of(request, now, HORIZON)
    return [Window(soonest, window.end) for window in windows if window.start <= soonest <= last_start(window)][:1]


def windows_ahead(request: Request, soonest: datetime) -> list[Window]:
    """When a reservation may start, not before `soonest`."""
    if not (request.windows or request.recurring):
        return [Window(soonest, soonest + AHEAD)]
    windows = windows_of(request, soonest, AHEAD)
    return [Window(max(window.start, soonest), max(window.end, soonest)) for window in windows][:MOST_RESERVED]
