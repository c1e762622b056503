"""When a site would have room, by what its scheduler says about everybody's jobs and reservations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.booking.model.calendar import Calendar
from sublet.booking.model.offer import Node, Take
from sublet.booking.model.request import Request, Window
from sublet.booking.model.shape import Amounts, Shape, is_enough
from sublet.booking.model.windows import last_start, windows_of
from sublet.platforms.batch.fitting import HORIZON
from sublet.platforms.batch.site import SiteNode

LEEWAY = timedelta(minutes=2)  # beyond the session's own time, so that the job can stop itself and record its end
AHEAD = timedelta(days=30)  # how far ahead a plan is made
MOST_RESERVED = 2  # reservations per request
SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class SitePlan:
    """The planned use of a site's nodes, by cores and GPUs."""

    nodes: tuple[SiteNode, ...]
    takes: tuple[Take, ...] = ()

    def find_start(self, amounts: Amounts, time: timedelta, windows: Sequence[Window]) -> datetime | None:
        """Return the earliest whole second in these windows from which there is room for `time`, or None."""
        sizes = Shape(0, amounts.shape.memory, 0, amounts.shape.disk)
        able = [each.node for each in self.nodes if each.here and is_enough(each.node, sizes)]
        calendar = Calendar([_count_only(node) for node in able])
        calendar.put("planned", self.takes)
        slot = calendar.earliest(Shape(amounts.shape.cores, 0, amounts.shape.gpus), amounts.nodes, time, windows)
        return round_up(slot.start) if slot else None


def _count_only(node: Node) -> Node:
    """Return a node with its cores and GPUs only, as few schedulers say how much memory is planned for others."""
    return Node(node.name, node.cores, 0, node.gpus)


def round_up(time: datetime) -> datetime:
    """Round up to the next whole second, as schedulers count no fractions."""
    return time.replace(microsecond=0) + (SECOND if time.microsecond else SECOND * 0)


def windows_now(request: Request, now: datetime) -> list[Window]:
    """Return when the request may start if it is submitted now to a scheduler that starts jobs as soon as it can."""
    soonest = max(now, request.not_before or now)
    if not (request.windows or request.recurring):
        return [Window(soonest, soonest + AHEAD)]
    windows = windows_of(request, now, HORIZON)
    return [Window(soonest, window.end) for window in windows if window.start <= soonest <= last_start(window)][:1]


def windows_ahead(request: Request, soonest: datetime) -> list[Window]:
    """Return when a reservation may start, not before `soonest`."""
    if not (request.windows or request.recurring):
        return [Window(soonest, soonest + AHEAD)]
    windows = windows_of(request, soonest, AHEAD)
    return [Window(max(window.start, soonest), max(window.end, soonest)) for window in windows][:MOST_RESERVED]
