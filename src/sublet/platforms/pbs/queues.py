"""Reader for PBS's queues: those that run jobs, and those that pass jobs on to others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, TypeVar

from sublet.platforms.batch.site import SiteNode, SiteQueue
from sublet.platforms.pbs.readers import count, read_json, read_length

L = TypeVar("L", int, timedelta)
RESERVATION = re.compile(r"[RMS]\d+")  # the queue of a reservation


@dataclass(frozen=True, slots=True)
class PbsQueues:
    """The queues that jobs can be submitted to, and which of them lead to a queue that runs jobs."""

    open: tuple[SiteQueue, ...]
    routes: Mapping[str, tuple[str, ...]]  # a queue that runs jobs → the queues to name to get there

    def place(self, node: SiteNode) -> SiteNode:
        """Return a node with the queues to name for it; one that isn't tied to a queue serves all of them."""
        names = [name for queue in node.queues for name in self.routes.get(queue, ())]
        every = tuple(queue.name for queue in self.open)
        return replace(node, queues=tuple(dict.fromkeys(names)) if node.queues else every)


def read_queues(text: str) -> PbsQueues:
    """Read the queues in `qstat -Q -f -F json`, without those of reservations.

    A queue that only other queues may send jobs to (`from_route_only`) can't be named at submission; the queues that
    pass jobs on to it can.
    """
    every: dict[str, Mapping[str, Any]] = read_json(text).get("Queue") or {}
    queues = {name: queue for name, queue in every.items() if not RESERVATION.fullmatch(name)}
    ends = {name: tuple(dict.fromkeys(_follow(name, queues, ()))) for name in queues}
    named = {name: ends[name] for name, queue in queues.items() if ends[name] and not _is_closed(queue)}
    routes = {end: tuple(name for name in named if end in named[name]) for end in queues}
    return PbsQueues(tuple(_join(name, queues, ends) for name, ends in named.items()), routes)


def _is_closed(queue: Mapping[str, Any]) -> bool:
    return str(queue.get("from_route_only", "")) == "True"


def _follow(name: str, queues: Mapping[str, Mapping[str, Any]], before: tuple[str, ...]) -> Iterator[str]:
    """Yield the queues of this server in which the jobs of a queue may run."""
    if str(queues[name].get("queue_type", "")).lower() != "route":
        yield name
        return
    for word in str(queues[name].get("route_destinations") or "").split(","):
        if (to := word.strip()) in queues and to not in (name, *before):
            yield from _follow(to, queues, (name, *before))


def _join(name: str, queues: Mapping[str, Mapping[str, Any]], ends: tuple[str, ...]) -> SiteQueue:
    """Return a queue with its limits; one that passes jobs on has also the widest limits of those that run them."""
    own, there = _read_queue(name, queues[name]), [_read_queue(end, queues[end]) for end in ends]
    return replace(
        own,
        max_time=own.max_time or find_widest([queue.max_time for queue in there]),
        max_nodes=own.max_nodes or find_widest([queue.max_nodes for queue in there]),
        min_nodes=own.min_nodes or min(queue.min_nodes for queue in there),
    )


def find_widest(limits: Sequence[L | None]) -> L | None:
    """Return the widest of several limits; None if one of them is none."""
    known = [limit for limit in limits if limit is not None]
    return max(known) if len(known) == len(limits) else None


def _read_queue(name: str, queue: Mapping[str, Any]) -> SiteQueue:
    most: Mapping[str, Any] = queue.get("resources_max") or {}
    least: Mapping[str, Any] = queue.get("resources_min") or {}
    return SiteQueue(
        name,
        up=str(queue.get("enabled", "True")) == "True" and str(queue.get("started", "True")) == "True",
        max_time=read_length(most.get("walltime")) if most.get("walltime") else None,
        min_nodes=count(least.get("nodect")),
        max_nodes=count(most.get("nodect")) or None,
    )
