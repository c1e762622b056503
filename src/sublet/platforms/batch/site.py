"""What a site has, for all schedulers: nodes, queues with their limits, reservations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sublet.booking.model.choices import Choices, merge_names
from sublet.booking.model.offer import Node


@dataclass(frozen=True, slots=True)
class SiteNode:
    """A node, its queues, and how many threads its scheduler counts per core."""

    node: Node
    queues: tuple[str, ...]
    threads: int = 1
    here: bool = True  # whether it can be used now, or once its jobs have ended
    gpu_types: tuple[str, ...] = ()  # the scheduler's names
    features: tuple[str, ...] = ()  # that a request can ask for


@dataclass(frozen=True, slots=True)
class SiteQueue:
    """A queue or partition and its limits; None means no limit of its own."""

    name: str
    up: bool = True
    default: bool = False
    whole: bool = False  # it gives whole nodes only
    min_nodes: int = 0
    max_nodes: int | None = None
    max_time: timedelta | None = None
    max_cores: int | None = None  # CPUs per node
    max_memory: int | None = None  # bytes per node
    max_core_memory: int | None = None  # bytes per CPU: a job with more memory is given more CPUs
    accounts: tuple[str, ...] = ()  # only these; empty: all
    denied: tuple[str, ...] = ()
    qos: str = ""  # its own QOS, whose limits aren't listed here
    needs_reservation: bool = False
    partition: str | None = None  # its name for the scheduler, if different; empty: the site chooses

    @property
    def said(self) -> str:
        """The queue's name in the scheduler's options."""
        return self.name if self.partition is None else self.partition


@dataclass(frozen=True, slots=True)
class SiteReservation:
    """Nodes that are reserved for someone, or for maintenance."""

    name: str
    start: datetime
    end: datetime
    nodes: tuple[str, ...]


def list_choices(nodes: Sequence[SiteNode], licenses: Mapping[str, int] | None = None) -> Choices:
    """Return what a request can choose among these nodes: GPU types, features and licenses."""
    return Choices(
        merge_names(node.gpu_types for node in nodes), merge_names(node.features for node in nodes), licenses
    )


def note_absent(nodes: Sequence[SiteNode]) -> list[str]:
    """Return a sentence for people if some of the nodes can't be used now."""
    absent = sum(not node.here for node in nodes)
    return [f"{absent} of {len(nodes)} nodes can't be used now"] if absent else []


def by_queue(queues: Iterable[SiteQueue], nodes: Iterable[SiteNode]) -> dict[str, list[SiteNode]]:
    """Return the nodes of each queue, including those that are away for now, as jobs may wait for them."""
    known = list(nodes)
    return {queue.name: [node for node in known if not queue.said or queue.said in node.queues] for queue in queues}
