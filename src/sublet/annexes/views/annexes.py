"""Views of annexes: requests for leases, their plans, and their state."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sublet.booking.views.events import EventView

OWN_LINES = ("queue", "project")  # scheduler options that have their own field


@dataclass(frozen=True, kw_only=True)
class DetailsView:
    """The details of a lease; empty or null values are unspecified."""

    system: str = ""
    queue: str = ""
    project: str = ""
    nodes: int | None = None
    cores: int | None = None  # on each node
    memory: int | None = None  # on each node
    gpus: int | None = None  # on each node
    slots: int | None = None  # on each node, of equal size; null: one, which is divided as jobs need
    lifetime: timedelta | None = None
    idle: timedelta | None = None  # how long a node may be without a job
    carry: str = ""  # direct, spool, or empty: determined by the pilot
    scheduler: dict[str, Any] = field(default_factory=dict)  # constraint, nice, …: as in a request


@dataclass(frozen=True, kw_only=True)
class LeaseAsk:
    """A request for nodes; missing `details` come from `like`, the template, the last lease, or the defaults."""

    name: str = ""  # of the annex; empty if it is in the path
    details: DetailsView = field(default_factory=DetailsView)
    template: str = ""
    like: str = ""  # an annex or one of its leases


@dataclass(frozen=True, kw_only=True)
class RowView:
    """One line of a resource request, and the system's finding about it."""

    field: str
    value: str
    source: str  # where the value comes from
    flag: str  # the flag that changes it
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
    charged: float | None = None  # in the centre's own unit
    coin: str = ""
    remark: str = ""


@dataclass(frozen=True, kw_only=True)
class PlanView:
    """A resource request before it is submitted."""

    annex: str
    lease: str  # the name that the lease would have: `example#2`
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
    slots: int = 0  # of equal size; 0: one, which is divided as jobs need
    memory: int = 0
    gpus: int = 0
    heard: datetime | None = None
    why: str = ""
    draining: bool = False  # whether it takes no new jobs, and ends after the running ones


@dataclass(frozen=True, kw_only=True)
class LeaseView:
    """One lease and its state."""

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
    queue: str = ""  # in which it waits or runs
    p10: datetime | None = None  # while it is queued: when it is expected to start
    p50: datetime | None = None
    p90: datetime | None = None
    started: datetime | None = None
    until: datetime | None = None
    ended: datetime | None = None
    nodes: tuple[NodeStateView, ...] = ()
    cost: CostView | None = None  # so far


@dataclass(frozen=True, kw_only=True)
class JobsView:
    """The numbers of jobs that name an annex."""

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
    sessions: bool = False  # whether it takes only sessions, at booked times
    guests: tuple[str, ...] = ()
    leases: tuple[LeaseView, ...] = ()
    jobs: JobsView | None = None  # null: the access point didn't answer
    trouble: str = ""


@dataclass(frozen=True, kw_only=True)
class AnnexList:
    """Annexes, by name."""

    items: tuple[AnnexView, ...]


@dataclass(frozen=True, kw_only=True)
class AnnexHistory:
    """All leases that an annex ever had, and their events, oldest first."""

    annex: AnnexView
    events: tuple[EventView, ...]


@dataclass(frozen=True, kw_only=True)
class RenameAsk:
    """A new name for an annex."""

    name: str


@dataclass(frozen=True, kw_only=True)
class ShutdownAsk:
    """Nodes of a lease, by number; none means the whole lease."""

    nodes: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DrainAsk:
    """Nodes of a lease, by number or name; none means the whole lease."""

    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GuestAsk:
    """A guest of an annex."""

    guest: str


@dataclass(frozen=True, kw_only=True)
class CloseAsk:
    """How to close an annex."""

    to_jobs: bool = False  # also to jobs that name it, so that only sessions run there


@dataclass(frozen=True, kw_only=True)
class TemplateView:
    """Details saved under a name."""

    name: str
    details: DetailsView
    changed: datetime


@dataclass(frozen=True, kw_only=True)
class TemplateList:
    """Templates, by name."""

    items: tuple[TemplateView, ...]
