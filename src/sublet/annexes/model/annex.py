"""An annex: a name for nodes leased to run HTCondor jobs; its leases, their details, and who may use it."""

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
ANNEX_PLATFORM = "annex-"  # prefix of the name of an annex's platform

# Attributes of jobs and slots. A job opts in by naming an annex's id. The access point determines the supplier of a
# slot from the pilot's token; the pilot can't set it.
SLOT_ANNEX = "SubletAnnex"  # in a slot: the annex's id
SLOT_LEASE = "SubletLease"  # in a slot: the lease's id
SLOT_NODE = "SubletNode"  # in a slot: the node's number in its lease
SLOT_OPEN = "SubletOpen"  # in a slot: whether it takes its owner's jobs that named no annex
SLOT_SESSIONS = "SubletSessions"  # in a slot: whether it takes only sessions, and no jobs that were submitted otherwise
SLOT_DRAINING = "SubletDraining"  # in a slot: whether its node takes no new jobs, and ends after the running ones
SLOT_END = "SubletEnd"  # in a slot: when its node ends, in seconds since the epoch
SLOT_TOOLS = "SubletTools"  # in a slot: tools for kinds of executables, as `sh=/bin/sh python3=/usr/bin/python3`
JOB_TARGET = "SubletTarget"  # in a job: the id of the annex that it runs on
JOB_SUPPLIER = "SubletSupplier"  # in a job: the owner of the slots that it may run on
JOB_SESSION = "SubletSession"  # in a job: the session that it runs
JOB_BOOKED = "SubletBooked"  # in a job: whether its session's time is booked
JOB_TIME = "SubletTime"  # in a job: its time limit in seconds; it starts on no node that ends before
JOB_KEPT = "SubletKept"  # in a session's job: its image or, where its system keeps that, the image's path there
JOB_GUEST = "SubletGuest"  # in a job: the person it runs for, if that isn't the annex's owner
# Attributes with which a submit description names an annex: Sublet's own, and that of HTCondor's annexes.
JOB_LINES = ("AnnexName", "TargetAnnexName")
JOB_TAKEN = "SubletTaken"  # in a job: the value of that line when the job was last marked
JOB_FOLLOWED = "SubletFollowed"  # in a job: when it was last marked other than by its line, in epoch seconds
DAG_MOVED = "SubletMoved"  # in a DAG's manager: when the DAG and all its nodes were marked, in epoch seconds
DRAINING = "draining"  # in a pilot's facts: whether its "node" or its whole "lease" is being drained
TARGETED = (
    f"(MY.{JOB_TARGET} =?= undefined || (TARGET.{SLOT_ANNEX} =?= MY.{JOB_TARGET}"
    f" && (TARGET.AuthenticatedIdentity =?= undefined || TARGET.AuthenticatedIdentity == MY.{JOB_SUPPLIER})))"
)
IN_TIME = (
    f"(MY.{JOB_TIME} =?= undefined || TARGET.{SLOT_END} =?= undefined || time() + MY.{JOB_TIME} <= TARGET.{SLOT_END})"
)


@dataclass(frozen=True, slots=True)
class Details:
    """The details of a lease; empty or None values come from the template, or else from the last lease."""

    system: str = ""
    queue: str = ""
    project: str = ""
    nodes: int | None = None
    cores: int | None = None  # per node
    memory: int | None = None  # per node, in bytes
    gpus: int | None = None  # per node
    slots: int | None = None  # per node, of equal size; None: one, which is divided as jobs need
    lifetime: timedelta | None = None
    idle: timedelta | None = None  # how long a pilot may be without a job
    carry: Literal["", "direct", "spool"] = ""  # how jobs get to the nodes; empty: the pilot finds out
    scheduler: SchedulerOptions = NOTHING_ASKED  # except the queue and the project, which are separate fields

    @property
    def amounts(self) -> Amounts:
        """The amounts that the lease takes from its system; unspecified ones are minimal."""
        shape = Shape(self.cores or 1, self.memory or 0, self.gpus or 0)
        return Amounts(shape, self.nodes or 1, self.lifetime or timedelta(0))


@dataclass(frozen=True, slots=True)
class Template:
    """Details saved under a name."""

    person: str
    name: str
    details: Details
    changed: datetime


@dataclass(frozen=True, slots=True)
class Annex:
    """A name, with an id, that its owner gives to leased nodes; it outlives its leases."""

    id: str
    person: str
    name: str
    created: datetime
    open: bool = False  # to all of its owner's jobs
    guests: tuple[str, ...] = ()  # people who may run contained sessions on it, under the owner's account
    sessions: bool = False  # only for sessions at booked times: it takes no other jobs


@dataclass(frozen=True, slots=True)
class Lease:
    """One resource request for an annex, recorded before it is submitted, and its outcome."""

    id: str
    annex: str  # the annex's id
    number: int  # `example#3` is number 3
    details: Details
    created: datetime
    session: str = ""  # the lease's session, once there are offers
    ended: datetime | None = None
    why: str = ""  # the reason, if it ended for another than its session reports


@dataclass(frozen=True, slots=True)
class Pilot:
    """The pilot of one node of a lease, and its last report."""

    lease: str
    number: int  # of the node in its lease, from 0
    claimed: datetime  # when it fetched its configuration
    node: str = ""  # the node's name at its site
    seen: datetime | None = None  # when it last called
    ended: datetime | None = None
    why: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)  # cores, memory, tools: as reported by the node

    @property
    def is_draining(self) -> bool:
        """Whether the pilot takes no new jobs, and ends after the running ones."""
        return bool(self.facts.get(DRAINING)) and self.ended is None


@dataclass(frozen=True, slots=True)
class Named:
    """A name that a person typed, for an annex or some of its leases."""

    name: str
    number: int | None = None
    day: date | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a resource request, as shown before it is submitted."""

    name: str  # a field of Details
    value: Any
    source: str  # "you", "template NAME", "last time", "default"


def check_name(text: str, noun: str = "annex") -> str:
    """Return the name of an annex or a template; raise BadName if it isn't valid."""
    if not NAME.fullmatch(text):
        raise BadName(noun=noun, name=text)
    return text


def parse_named(text: str) -> Named:
    """Parse `example`, `example#3` or `example@2026-11-14`."""
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
    """Return the leases that a name means: all, the one with the number, or those created on the day (UTC)."""
    if named.number is not None:
        return [lease for lease in leases if lease.number == named.number]
    if named.day is not None:
        return [lease for lease in leases if lease.created.astimezone(UTC).date() == named.day]
    return list(leases)


def fill_details(sources: Sequence[tuple[str, Details]]) -> tuple[Details, tuple[Line, ...]]:
    """Combine details from several sources, of which the first with a value wins; return each line's source too."""
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
