"""An annex: a name for nodes that are leased to run HTCondor jobs; its leases, their details, and who may use it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

from sublet.booking.model.scheduler import NOTHING_ASKED, SchedulerOptions
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import BadName

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")
CARRIES = ("direct", "spool")
ANNEX_PLATFORM = "annex-"  # an annex's platform is called so, and then by the annex's name

# What jobs and slots say of themselves. A job opts in by naming an annex's id; the slot's supplier is told by
# the access point from the token that the pilot came with, never by the pilot.
SLOT_ANNEX = "SubletAnnex"  # in a slot: the annex's id
SLOT_LEASE = "SubletLease"  # in a slot: the lease's id
SLOT_NODE = "SubletNode"  # in a slot: the node's number in its lease
SLOT_OPEN = "SubletOpen"  # in a slot: whether it takes its owner's jobs that named no annex
SLOT_SESSIONS = "SubletSessions"  # in a slot: whether it takes sessions alone, and no jobs submitted otherwise
SLOT_DRAINING = "SubletDraining"  # in a slot: whether its node takes no new jobs, and ends after those that run
SLOT_END = "SubletEnd"  # in a slot: when its node ends, in seconds since the epoch
SLOT_TOOLS = "SubletTools"  # in a slot: what kinds can use there, as `sh=/bin/sh python3=/usr/bin/python3`
JOB_TARGET = "SubletTarget"  # in a job: the annex's id that it is to run on
JOB_SUPPLIER = "SubletSupplier"  # in a job: whose slots it may run on
JOB_SESSION = "SubletSession"  # in a job: the session that it is
JOB_BOOKED = "SubletBooked"  # in a job: that its session has its time booked
JOB_TIME = "SubletTime"  # in a job: how many seconds it may run; it starts on no node that ends before
JOB_KEPT = "SubletKept"  # in a session's job: its image, as it is brought; where its system keeps it, its path there
JOB_GUEST = "SubletGuest"  # in a job: for whom it runs, when that is not the annex's owner
# What a person writes in a submit description to name an annex: Sublet's own word, and that of HTCondor's annexes.
JOB_LINES = ("AnnexName", "TargetAnnexName")
JOB_TAKEN = "SubletTaken"  # in a job: that line as it was when the job was last marked
JOB_FOLLOWED = "SubletFollowed"  # in a job: when it was last marked otherwise than by its line, in epoch seconds
DAG_MOVED = "SubletMoved"  # in a DAG's manager: when the DAG was marked with all its nodes, in epoch seconds
DRAINING = "draining"  # in a pilot's facts: that its "node", or its whole "lease", is being drained
TARGETED = (
    f"(MY.{JOB_TARGET} =?= undefined || (TARGET.{SLOT_ANNEX} =?= MY.{JOB_TARGET}"
    f" && (TARGET.AuthenticatedIdentity =?= undefined || TARGET.AuthenticatedIdentity == MY.{JOB_SUPPLIER})))"
)
IN_TIME = (
    f"(MY.{JOB_TIME} =?= undefined || TARGET.{SLOT_END} =?= undefined || time() + MY.{JOB_TIME} <= TARGET.{SLOT_END})"
)


@dataclass(frozen=True, slots=True)
class Details:
    """What a lease is made of. What is empty or None comes from the template, else from the last time."""

    system: str = ""
    queue: str = ""
    project: str = ""
    nodes: int | None = None
    cores: int | None = None  # per node
    memory: int | None = None  # per node, in bytes
    gpus: int | None = None  # per node
    slots: int | None = None  # per node, of equal size; None: one, which is cut up as jobs need
    lifetime: timedelta | None = None
    idle: timedelta | None = None  # a pilot without a job for so long ends
    carry: Literal["", "direct", "spool"] = ""  # how jobs get to the nodes; empty: the pilot finds out
    scheduler: SchedulerOptions = NOTHING_ASKED  # beside the queue and the project, which are lines of their own

    @property
    def amounts(self) -> Amounts:
        """What the lease takes of its system; what nobody said is the least."""
        shape = Shape(self.cores or 1, self.memory or 0, self.gpus or 0)
        return Amounts(shape, self.nodes or 1, self.lifetime or timedelta(0))


@dataclass(frozen=True, slots=True)
class Template:
    """Details under a name."""

    person: str
    name: str
    details: Details
    changed: datetime


@dataclass(frozen=True, slots=True)
class Annex:
    """A name of its owner's, with an id; the name outlives its members."""

    id: str
    person: str
    name: str
    created: datetime
    open: bool = False  # to all of its owner's jobs
    guests: tuple[str, ...] = ()  # who may run contained sessions on it, as the owner's account
    sessions: bool = False  # for sessions alone, whose times are booked: no job is submitted to it otherwise


@dataclass(frozen=True, slots=True)
class Lease:
    """One resource request for an annex, recorded before anything is sent, and what came of it."""

    id: str
    annex: str  # the annex's id
    number: int  # `example#3` is the third
    details: Details
    created: datetime
    session: str = ""  # the session that is the lease, once there are offers
    ended: datetime | None = None
    why: str = ""  # in words, when it ended otherwise than its session says


@dataclass(frozen=True, slots=True)
class Pilot:
    """What one node of a lease has told."""

    lease: str
    number: int  # of the node in its lease, from 0
    claimed: datetime  # when it fetched its configuration
    node: str = ""  # the node's name at its site
    seen: datetime | None = None  # when it was last heard
    ended: datetime | None = None
    why: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)  # cores, memory, tools: as the node said

    @property
    def is_draining(self) -> bool:
        """Whether it takes no new jobs, and ends after those that run."""
        return bool(self.facts.get(DRAINING)) and self.ended is None


@dataclass(frozen=True, slots=True)
class Named:
    """What a person typed to name an annex, or one lease of it."""

    name: str
    number: int | None = None
    day: date | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a resource request, as it is shown before anything is sent."""

    name: str  # a field of Details
    value: Any
    source: str  # "you", "template NAME", "last time", "default"


def check_name(text: str, noun: str = "annex") -> str:
    """The name of an annex or a template."""
    if not NAME.fullmatch(text):
        raise BadName(noun=noun, name=text)
    return text


def parse_named(text: str) -> Named:
    """Read `example`, `example#3` or `example@2026-11-14`."""
    name, mark, rest = _split(text)
    check_name(name)
    if mark == "#" and rest.isascii() and rest.isdigit() and int(rest) > 0:
        return Named(name, number=int(rest))
    if mark == "@":
        try:
            return Named(name, day=date.fromisoformat(rest))
        except ValueError:
            pass
    if mark:
        raise BadName(noun="lease", name=text)
    return Named(name)


def _split(text: str) -> tuple[str, str, str]:
    for mark in "#@":
        name, separator, rest = text.partition(mark)
        if separator:
            return name, mark, rest
    return text, "", ""


def choose_leases(named: Named, leases: Sequence[Lease]) -> list[Lease]:
    """The leases that a name means: all, the one of that number, or those made on that day (UTC)."""
    if named.number is not None:
        return [lease for lease in leases if lease.number == named.number]
    if named.day is not None:
        return [lease for lease in leases if lease.created.astimezone(UTC).date() == named.day]
    return list(leases)


def fill_details(sources: Sequence[tuple[str, Details]]) -> tuple[Details, tuple[Line, ...]]:
    """Details out of several, the first that says something of a line wins; and where each line came from."""
    values: dict[str, Any] = {}
    lines = []
    for name in (each.name for each in fields(Details) if each.name != "scheduler"):
        for source, details in sources:
            value = getattr(details, name)
            if value not in ("", None):
                values[name] = value
                lines.append(Line(name, value, source))
                break
    scheduler: dict[str, Any] = {}
    for source, details in sources:
        new = {name: value for name, value in details.scheduler.list_asked().items() if name not in scheduler}
        scheduler |= new
        lines += [Line(name, value, source) for name, value in new.items()]
    return Details(**values, scheduler=SchedulerOptions(**scheduler)), tuple(lines)
