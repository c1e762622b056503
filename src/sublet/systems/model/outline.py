"""A whole request to a system: every part, who said so, the flag that changes it, what speaks against it, its cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

from sublet.systems.model.allocation import Cost, cost_of
from sublet.systems.model.refusals import check, fill_wish, queue_for
from sublet.systems.model.system import Queue, System
from sublet.systems.model.wish import SystemFinding, Wish, is_refused

YOU = "you"
DEFAULT = "default"
_SETTLED = ("queue", "project", "constraint")  # what a system of one's own can say for each request


@dataclass(frozen=True, slots=True)
class Outline:
    """A request as a system would see it."""

    wish: Wish  # with what the person's own file says
    queue: Queue | None  # what it was checked against
    rows: tuple[SystemFinding, ...]
    cost: Cost | None  # for its whole time; None: nobody said for how long

    @property
    def refused(self) -> bool:
        """Whether anything of it would be refused."""
        return is_refused(self.rows)


def outline(
    system: System, wish: Wish, *, sources: Mapping[str, str] | None = None, today: date | None = None
) -> Outline:
    """Check a wish, and lay all of it out; `sources` says who said a part, where that wasn't the person just now."""
    whole = fill_wish(system, wish)
    queue = queue_for(system, wish)
    rows = tuple(
        replace(row, source=_source(row.field, system, wish, sources or {})) for row in check(system, wish, today)
    )
    return Outline(whole, queue, rows, _cost(whole, queue))


def _source(field: str, system: System, wish: Wish, sources: Mapping[str, str]) -> str:
    value = getattr(wish, {"option": "options"}.get(field, field), None)
    if value not in (None, "", ()):
        return sources.get(field, YOU)
    if field in _SETTLED and getattr(system, field):
        return f"how {system.name} was added"
    if field == "queue" and system.default_queue:
        return f"the default of {system.name}"
    return DEFAULT


def _cost(wish: Wish, queue: Queue | None) -> Cost | None:
    """What it costs for its whole time; where nodes are shared, hours of nodes say nothing."""
    if wish.time is None:
        return None
    if queue is None or queue.sharing != "shared":
        return cost_of(wish, queue, wish.time)
    is_one_core = wish.cores is None and wish.node_count == 1  # the core that is taken where nobody says
    return replace(cost_of(replace(wish, cores=1) if is_one_core else wish, queue, wish.time), node_hours=0.0)
