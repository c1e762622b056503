"""What a site has, whichever scheduler told of it: nodes, queues with their limits, reservations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.booking.model.choices import Choices, merge_names
from sublet.booking.model.offer import Node


@dataclass(frozen=True, slots=True)
class SiteNode:
    """A node, the queues that it is in, and how many threads its scheduler counts for each of its cores."""

    node: Node
    queues: tuple[str, ...]
    threads: int = 1
    here: bool = True  # whether it can be used now, or when its jobs have ended
    gpu_types: tuple[str, ...] = ()  # as its scheduler calls them
    features: tuple[str, ...] = ()  # that a request can ask for


@dataclass(frozen=True, slots=True)
class SiteQueue:
    """A queue, or partition, and its limits; None is no limit of its own."""

    name: str
    up: bool = True
    default: bool = False
    whole: bool = False  # it gives whole nodes only
    min_nodes: int = 0
    max_nodes: int | None = None
    max_time: timedelta | None = None
    max_cores: int | None = None  # CPUs per node
    max_memory: int | None = None  # bytes per node
    max_core_memory: int | None = None  # bytes per CPU: who takes more memory is given more CPUs
    accounts: tuple[str, ...] = ()  # only these; empty: all
    denied: tuple[str, ...] = ()
    qos: str = ""  # a QOS of its own, whose limits are not shown here
    needs_reservation: bool = False
    partition: str | None = None  # what is said to the scheduler, if not the name; empty: nothing, for the site chooses

    @property
    def said(self) -> str:
        """The queue as it is said to the scheduler."""
        return self.name if self.partition is None else self.partition


@dataclass(frozen=True, slots=True)
class SiteReservation:
    """Nodes that are kept for someone, or for maintenance."""

    name: str
    start: datetime
    end: datetime
    nodes: tuple[str, ...]


def list_choices(nodes: Sequence[SiteNode], licenses: Mapping[str, int] | None = None) -> Choices:
    """What can be chosen of these nodes."""
    return Choices(
        merge_names(node.gpu_types for node in nodes), merge_names(node.features for node in nodes), licenses
    )


def note_absent(nodes: Sequence[SiteNode]) -> list[str]:
    """A sentence for people if some of the nodes can't be used now."""
    absent = sum(not node.here for node in nodes)
    return [f"{absent} of {len(nodes)} nodes can't be used now"] if absent else []


def by_queue(queues: Iterable[SiteQueue], nodes: Iterable[SiteNode]) -> dict[str, list[SiteNode]]:
    """The nodes that each queue has, also those that are away for now: jobs may wait for them."""
    known = list(nodes)
    return {queue.name: [node for node in known if not queue.said or queue.said in node.queues] for queue in queues}
