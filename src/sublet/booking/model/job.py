"""What a platform is given to run, and what it reports."""

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
    """A directory of the session, and where the executable sees it."""

    source: str  # below the session's directory: "data/cube"
    target: str  # as in the request
    read_only: bool = True


@dataclass(frozen=True)
class Program:
    """What a way makes of an executable: a list of words, files and environment, and never a shell line."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)  # written below the working directory first
    tools: tuple[str, ...] = ()  # tools that it calls, which a system may provide as modules
    connects: str = ""  # the kind of its connector, if it has one: "uri:jupyter-lab"
    join: tuple[str, ...] = ()  # run once after the last part has ended, to join the parts' results
    each_node: bool = False  # of several nodes: it is started once on each, not only on the first
    outlives_nodes: bool = False  # of several nodes: it goes on when one of them is lost
    image: str = ""  # the image that it runs in, where the platform itself runs images
    keeps_entrypoint: bool = False  # `argv` are arguments for that image's own entrypoint
    in_work: bool = False  # it starts in the session's working directory, not where its image says


@dataclass(frozen=True)
class Job:
    """One program with its resources and its time; or one program, run once for each part of the work.

    Each part learns which it is from the environment (see `parts.py`), has all the amounts to itself, and starts and
    ends independently of the others.
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
    scheduler: SchedulerOptions = NOTHING_ASKED  # on a shared platform; options that aren't set come from the settings
    begin: datetime | None = None  # in a shared queue: no start before this
    reservation: str = ""  # in a shared queue: the key of the reservation that holds its nodes
    after: tuple[str, ...] = ()  # jobs of the same platform that must succeed first, where its queue supports that


class State(StrEnum):
    """The state of a job, as reported by its platform."""

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"
    UNKNOWN = "unknown"  # the platform has no record of it


@dataclass(frozen=True)
class JobState:
    """A platform's report on a job."""

    state: State
    end: End | None = None  # when it has ended
    started: datetime | None = None
    ended: datetime | None = None
    connector: Connector | None = None  # where it listens, as the service reaches it: http://127.0.0.1:41233
    condition: str = ""  # in the platform's words
    until: datetime | None = None  # of several parts, or at another broker: when its time ends, if known
    marks: Marks = NONE  # `paused`, if someone paused it
