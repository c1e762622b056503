"""What a platform is given to run, and what it says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from sublet.booking.model.marks import NONE, Marks
from sublet.booking.model.places import BoundPlace
from sublet.booking.model.scheduler import NOTHING_ASKED, SchedulerOptions
from sublet.booking.model.session import Connector, End
from sublet.booking.model.shape import Amounts


@dataclass(frozen=True)
class Mount:
    """A directory of the session, where the executable is to see it."""

    source: str  # below the session's directory: "data/cube"
    target: str  # as in the request
    read_only: bool = True


@dataclass(frozen=True)
class Program:
    """What a kind's way makes of an executable: words, files and environment; nothing is a shell line."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)  # written below the working directory first
    tools: tuple[str, ...] = ()  # what it calls that a system may have in a module
    connects: str = ""  # the connector's kind, when it serves one: "uri:jupyter-lab"
    join: tuple[str, ...] = ()  # run once after the last part has ended: puts together what the parts left
    each_node: bool = False  # of several nodes: it is started once on each of them, not on the first alone
    outlives_nodes: bool = False  # of several nodes: it goes on when one of them is lost
    image: str = ""  # what it runs in, where the platform itself runs images
    keeps_entrypoint: bool = False  # `argv` are arguments of that image's own entrypoint
    in_work: bool = False  # that begins in the session's working directory, not where its image says


@dataclass(frozen=True)
class Job:
    """One program with its resources and its time; or one program, run once for each part of the work.

    Of several parts each is told which it is by the environment (see `core.parts`), has all the amounts to
    itself, and may start and end when the others don't.
    """

    program: Program
    amounts: Amounts
    nodes: tuple[str, ...]  # exact ones; empty where the platform chooses
    until: datetime  # the end of the booked time
    warn: timedelta  # how long before the end it is warned
    mounts: tuple[Mount, ...] = ()
    places: tuple[BoundPlace, ...] = ()
    kept: Mapping[str, str] = field(default_factory=dict)  # a path below the session's directory → the kept file there
    person: str = ""
    name: str = ""
    scheduler: SchedulerOptions = NOTHING_ASKED  # of a shared platform: what it doesn't say is as settings say
    begin: datetime | None = None  # of a shared queue: not before this
    reservation: str = ""  # of a shared queue: the key of the reservation that holds its nodes
    after: tuple[str, ...] = ()  # jobs of the same platform that must end well first, where it can wait for them


class State(StrEnum):
    """Where a job is, as a platform says it."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"
    UNKNOWN = "unknown"  # the platform has no record of it


@dataclass(frozen=True)
class JobState:
    """What a platform says of a job."""

    state: State
    end: End | None = None  # when it has ended
    started: datetime | None = None
    ended: datetime | None = None
    connector: Connector | None = None  # where it listens, as the service reaches it: http://127.0.0.1:41233
    condition: str = ""  # in the platform's words
    until: datetime | None = None  # of several parts, or elsewhere: when its time is over, as far as it is known
    marks: Marks = NONE  # `paused`, if it stands still because someone wanted that
