"""A job as it would be asked for, and what a system says to each part of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from sublet.booking.model.request import Request
from sublet.booking.model.shape import sizes_of

State = Literal["ok", "warning", "error", "unknown"]  # unknown: nobody wrote down the limit


@dataclass(frozen=True, slots=True)
class Wish:
    """What is wanted of a system; what is empty or None was not said."""

    queue: str = ""
    project: str = ""
    constraint: str = ""
    nodes: int | None = None
    cores: int | None = None  # on each node
    memory: int | None = None  # on each node, in bytes
    gpus: int | None = None  # on each node
    disk: int | None = None  # on each node, in bytes
    time: timedelta | None = None
    jobs: int | None = None  # how many such at once
    options: tuple[str, ...] = ()  # further words for the scheduler
    time_flag: str = "--time"  # what a person types to change the time

    @property
    def node_count(self) -> int:
        """How many nodes, if nobody says: one."""
        return self.nodes or 1


@dataclass(frozen=True, slots=True)
class SystemFinding:
    """One part of a wish: what was said, the limit, and what would be a YES."""

    state: State
    field: str
    flag: str  # what changes it on the command line
    wanted: str
    limit: str = ""
    message: str = ""  # why it is not simply fine
    nearest: str = ""  # what to write instead
    source: str = ""  # who said it: "you", a file's name, "default"; empty: nobody looked


def wish_of(request: Request) -> Wish:
    """What a request wants of a system: the least that it is content with."""
    least = request.least
    return Wish(nodes=least.nodes, **sizes_of(least.shape), time=least.time)


def is_refused(findings: tuple[SystemFinding, ...]) -> bool:
    """Whether anything of it would be refused."""
    return any(finding.state == "error" for finding in findings)
