"""What a session takes: of each node, and in all. One value from the request, by the offer, to the job."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import timedelta
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Shape:
    """What is taken of one node."""

    cores: int
    memory: int  # in bytes
    gpus: int = 0
    disk: int = 0  # in bytes, of the node's own


OF_A_NODE = tuple(field.name for field in fields(Shape))
WITHOUT_DISK = tuple(name for name in OF_A_NODE if name != "disk")  # as leases, manifests and invited sites count
SIZES = ("nodes", *OF_A_NODE)  # as requests, leases and the command line call them


class HasSizes(Protocol):
    """Anything that has, or takes, so much of a node."""

    @property
    def cores(self) -> int:
        """How many."""

    @property
    def memory(self) -> int:
        """How many bytes."""

    @property
    def gpus(self) -> int:
        """How many."""

    @property
    def disk(self) -> int:
        """How many bytes of the node's own."""


def sizes_of(sized: HasSizes) -> dict[str, Any]:
    """What it has, or takes, of a node, by name: what travels, and what programs are told."""
    return {name: getattr(sized, name) for name in OF_A_NODE}


def is_enough(there: HasSizes, wanted: HasSizes) -> bool:
    """Whether one has at least as much of everything as the other."""
    return all(getattr(there, name) >= getattr(wanted, name) for name in OF_A_NODE)


@dataclass(frozen=True, slots=True)
class TotalAmounts:
    """What one session takes, over all its nodes together."""

    cores: int = 0
    memory: int = 0  # bytes
    gpus: int = 0
    nodes: int = 0
    time: timedelta = timedelta(0)

    @property
    def hours(self) -> float:
        """Its core-hours."""
        return self.cores * (self.time / timedelta(hours=1))


@dataclass(frozen=True, slots=True)
class Amounts:
    """So many nodes, of each of them so much, for so long."""

    shape: Shape  # of each node
    nodes: int = 1
    time: timedelta = timedelta(0)
    parts: int = 1  # jobs that it is made of, each with all of the above

    @property
    def total(self) -> TotalAmounts:
        """The same over all nodes of all parts."""
        nodes, each = self.nodes * self.parts, self.shape
        return TotalAmounts(each.cores * nodes, each.memory * nodes, each.gpus * nodes, nodes, self.time)
