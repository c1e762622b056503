"""Annexes: what is asked for, what would come of it, and how they are."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sublet.booking.views.events import EventView

OWN_LINES = ("queue", "project")  # scheduler options that are details of their own


@dataclass(frozen=True, kw_only=True)
class DetailsView:
    """What a lease is made of; what is empty or null is not said."""

    system: str = ""
    queue: str = ""
    project: str = ""
    nodes: int | None = None
    cores: int | None = None  # on each node
    memory: int | None = None  # on each node
    gpus: int | None = None  # on each node
    slots: int | None = None  # on each node, of equal size; null: one, which is cut up as jobs need
    lifetime: timedelta | None = None
    idle: timedelta | None = None  # a node without a job for so long ends
    carry: str = ""  # direct, spool, or empty: as the pilot finds out
    scheduler: dict[str, Any] = field(default_factory=dict)  # constraint, nice, …: as a request has them


@dataclass(frozen=True, kw_only=True)
class LeaseAsk:
    """Asks for nodes; what `details` leave out comes from `like`, the template, the last time, the defaults."""

    name: str = ""  # of the annex; empty where the address says it
    details: DetailsView = field(default_factory=DetailsView)
    template: str = ""
    like: str = ""  # an annex or one of its leases


@dataclass(frozen=True, kw_only=True)
class RowView:
    """One line of a resource request, and what the system says to it."""

    field: str
    value: str
    source: str  # who said so
    flag: str  # what changes it
    state: str  # ok, warning, error, unknown
    limit: str = ""
    message: str = ""
    nearest: str = ""


@dataclass(frozen=True, kw_only=True)
class CostView:
    """What nodes cost an allocation."""

    node_hours: float
    core_hours: float | None = None
    gpu_hours: float | None = None
    charged: float | None = None  # in the centre's own coin
    coin: str = ""
    remark: str = ""


@dataclass(frozen=True, kw_only=True)
class PlanView:
    """A resource request, before anything is sent."""

    annex: str
    lease: str  # the name that it would have: `example#2`
    refused: bool
    details: DetailsView  # filled in
    rows: tuple[RowView, ...]
    cost: CostView


@dataclass(frozen=True, kw_only=True)
class NodeStateView:
    """One node of a lease."""

    number: int
    node: str
    state: str  # starting, up, dead, ended
    cores: int = 0
    busy: int = 0  # cores
    running: int = 0  # jobs
    slots: int = 0  # of equal size; 0: one, which is cut up as jobs need
    memory: int = 0
    gpus: int = 0
    heard: datetime | None = None
    why: str = ""
    draining: bool = False  # whether it takes no new jobs, and ends after those that run


@dataclass(frozen=True, kw_only=True)
class LeaseView:
    """One lease, and what has come of it."""

    id: str
    name: str  # example#3
    number: int
    state: str  # asked, queued, starting, up, dead, ending, ended
    why: str = ""
    details: DetailsView
    created: datetime
    session: str = ""
    job: str = ""  # the platform's own id
    phase: str = ""  # of its session
    queue: str = ""  # that it waits or runs in
    p10: datetime | None = None  # while it waits: when it is expected to start
    p50: datetime | None = None
    p90: datetime | None = None
    started: datetime | None = None
    until: datetime | None = None
    ended: datetime | None = None
    nodes: tuple[NodeStateView, ...] = ()
    cost: CostView | None = None  # so far


@dataclass(frozen=True, kw_only=True)
class JobsView:
    """The jobs that name an annex."""

    idle: int = 0
    running: int = 0
    held: int = 0


@dataclass(frozen=True, kw_only=True)
class AnnexView:
    """An annex: its leases, and the jobs that name it."""

    id: str
    name: str
    person: str
    created: datetime
    open: bool = False
    sessions: bool = False  # no job is submitted to it: sessions alone, at booked times
    guests: tuple[str, ...] = ()
    leases: tuple[LeaseView, ...] = ()
    jobs: JobsView | None = None  # null: the access point did not say
    trouble: str = ""


@dataclass(frozen=True, kw_only=True)
class AnnexList:
    """Annexes, by name."""

    items: tuple[AnnexView, ...]


@dataclass(frozen=True, kw_only=True)
class AnnexHistory:
    """All leases that an annex ever had, and what happened to them, oldest first."""

    annex: AnnexView
    events: tuple[EventView, ...]


@dataclass(frozen=True, kw_only=True)
class RenameAsk:
    """Asks for another name."""

    name: str


@dataclass(frozen=True, kw_only=True)
class ShutdownAsk:
    """Names nodes of a lease by their numbers; none: all of it."""

    nodes: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DrainAsk:
    """Names nodes of a lease, by their numbers or their names; none: all of it."""

    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GuestAsk:
    """Names a guest."""

    guest: str


@dataclass(frozen=True, kw_only=True)
class CloseAsk:
    """How far an annex is closed."""

    to_jobs: bool = False  # also to jobs that name it: sessions alone run there


@dataclass(frozen=True, kw_only=True)
class TemplateView:
    """Details under a name."""

    name: str
    details: DetailsView
    changed: datetime


@dataclass(frozen=True, kw_only=True)
class TemplateList:
    """Templates, by name."""

    items: tuple[TemplateView, ...]
