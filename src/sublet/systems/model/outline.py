"""A checked request to a system: every part with its source, the flag that changes it, its findings and its cost."""

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
_SETTLED = ("queue", "project", "constraint")  # parts for which a person's own system can have a default


@dataclass(frozen=True, slots=True)
class Outline:
    """A request as a system would see it."""

    wish: Wish  # completed from the person's own file
    queue: Queue | None  # the queue that the request was checked against
    rows: tuple[SystemFinding, ...]
    cost: Cost | None  # for the whole time; None if no time was given

    @property
    def refused(self) -> bool:
        """Whether any part of the request would be refused."""
        return is_refused(self.rows)


def outline(
    system: System, wish: Wish, *, sources: Mapping[str, str] | None = None, today: date | None = None
) -> Outline:
    """Check a wish and return all its parts; `sources` names the origin of parts that the person didn't just type."""
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
    """Return the cost for the whole time; node-hours are left out where nodes are shared."""
    if wish.time is None:
        return None
    if queue is None or queue.sharing != "shared":
        return cost_of(wish, queue, wish.time)
    is_one_core = wish.cores is None and wish.node_count == 1  # the default where no cores are given
    return replace(cost_of(replace(wish, cores=1) if is_one_core else wish, queue, wish.time), node_hours=0.0)
