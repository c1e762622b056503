"""What a session takes of each node and in all: one value from the request through the offer to the job."""

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
    disk: int = 0  # in bytes, local to the node


OF_A_NODE = tuple(field.name for field in fields(Shape))
WITHOUT_DISK = tuple(name for name in OF_A_NODE if name != "disk")  # as leases, manifests and invited sites count
SIZES = ("nodes", *OF_A_NODE)  # as requests, leases and the command line call them


class HasSizes(Protocol):
    """Anything that has, or takes, so much of a node."""

    @property
    def cores(self) -> int:
        """The number of cores."""

    @property
    def memory(self) -> int:
        """The bytes of memory."""

    @property
    def gpus(self) -> int:
        """The number of GPUs."""

    @property
    def disk(self) -> int:
        """The bytes of the node's local disk."""


def sizes_of(sized: HasSizes) -> dict[str, Any]:
    """Return the sizes by name, as documents and programs use them."""
    return {name: getattr(sized, name) for name in OF_A_NODE}


def is_enough(there: HasSizes, wanted: HasSizes) -> bool:
    """Whether `there` has at least as much of everything as `wanted`."""
    return all(getattr(there, name) >= getattr(wanted, name) for name in OF_A_NODE)


@dataclass(frozen=True, slots=True)
class TotalAmounts:
    """What one session takes over all its nodes."""

    cores: int = 0
    memory: int = 0  # bytes
    gpus: int = 0
    nodes: int = 0
    time: timedelta = timedelta(0)

    @property
    def hours(self) -> float:
        """The session's core-hours."""
        return self.cores * (self.time / timedelta(hours=1))


@dataclass(frozen=True, slots=True)
class Amounts:
    """A number of nodes, what is taken of each, and for how long."""

    shape: Shape  # of each node
    nodes: int = 1
    time: timedelta = timedelta(0)
    parts: int = 1  # the number of jobs, each with all of the above

    @property
    def total(self) -> TotalAmounts:
        """The totals over all nodes of all parts."""
        nodes, each = self.nodes * self.parts, self.shape
        return TotalAmounts(each.cores * nodes, each.memory * nodes, each.gpus * nodes, nodes, self.time)
