"""A job as it would be requested, and a system's findings about each part of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from sublet.booking.model.request import Request
from sublet.booking.model.shape import sizes_of

State = Literal["ok", "warning", "error", "unknown"]  # unknown: no source states the limit


@dataclass(frozen=True, slots=True)
class Wish:
    """A request to a system; empty or None is unspecified."""

    queue: str = ""
    project: str = ""
    constraint: str = ""
    nodes: int | None = None
    cores: int | None = None  # on each node
    memory: int | None = None  # on each node, in bytes
    gpus: int | None = None  # on each node
    disk: int | None = None  # on each node, in bytes
    time: timedelta | None = None
    jobs: int | None = None  # how many such jobs at once
    options: tuple[str, ...] = ()  # further options for the scheduler
    time_flag: str = "--time"  # the flag that changes the time

    @property
    def node_count(self) -> int:
        """The number of nodes, by default one."""
        return self.nodes or 1


@dataclass(frozen=True, slots=True)
class SystemFinding:
    """The finding about one part of a wish: the value, the limit, and what would be accepted."""

    state: State
    field: str
    flag: str  # the command line's flag that changes it
    wanted: str
    limit: str = ""
    message: str = ""  # why it isn't simply ok
    nearest: str = ""  # what to write instead
    source: str = ""  # where the value comes from: "you", a file's name, "default"; empty: not determined


def wish_of(request: Request) -> Wish:
    """Return what a request needs of a system: the least that it accepts."""
    least = request.least
    return Wish(nodes=least.nodes, **sizes_of(least.shape), time=least.time)


def is_refused(findings: tuple[SystemFinding, ...]) -> bool:
    """Whether any finding is a refusal."""
    return any(finding.state == "error" for finding in findings)
