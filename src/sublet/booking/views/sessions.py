"""Views of sessions."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sublet.booking.model.gpu_sorts import GpuSort
from sublet.booking.views.quotes import QuoteView, RunTimeView, StagingView, TermsView


@dataclass(frozen=True, kw_only=True)
class UsageView:
    """What a session used: seconds, CPU seconds, peak memory in bytes, kWh, and the grams of CO2 for those."""

    wall: float = 0.0
    cpu: float = 0.0
    peak_memory: int = 0
    energy: float = 0.0
    carbon: float = 0.0
    energy_source: str = ""  # measured, or settings: by the operator's figures; empty: unknown


@dataclass(frozen=True, kw_only=True)
class EndView:
    """How a session ended, for programs, and as a sentence for people."""

    kind: str
    code: int | None = None
    signal: int | None = None
    by: str = ""
    detail: str = ""
    sentence: str = ""
    usage: UsageView | None = None


@dataclass(frozen=True, kw_only=True)
class ConnectorView:
    """A way to connect to a running session."""

    kind: str
    status: str
    protocol: str
    location: str


@dataclass(frozen=True, kw_only=True)
class SessionView:
    """A session: what was accepted, and its present state."""

    id: str
    short: str  # as much of the id as a person needs to type
    offerset: str
    person: str
    name: str
    kind: str  # the executable's short kind
    phase: str
    condition: str = ""  # in words, in addition to the phase
    marks: tuple[str, ...] = ()  # for programs: the values of Mark, as paused, lost or login-needed
    platform: str
    pledge: str = ""  # the platform's pledges that it draws on: `srcnet`, `srcnet + open`; empty: the platform has none
    way: str
    nodes: tuple[str, ...]
    cores: int  # per node
    memory: int  # per node
    gpus: int  # per node
    gpu_sorts: tuple[GpuSort, ...] = ()  # they are of one of these; empty: unknown
    disk: int = 0  # bytes of local disk, per node
    storage: dict[str, int] = field(default_factory=dict)
    pools: dict[str, str] = field(default_factory=dict)  # the pool in which each storage is booked
    duration: timedelta
    created: datetime
    modified: datetime
    expires: datetime  # when the offer expires; it counts while OFFERED
    start: datetime | None = None  # the planned start
    until: datetime | None = None  # when its booked time ends
    started: datetime | None = None  # the actual start
    ended: datetime | None = None
    job: str = ""  # the platform's own id
    end: EndView | None = None
    connectors: tuple[ConnectorView, ...] = ()
    costs: tuple[QuoteView, ...] = ()
    metrics: tuple[QuoteView, ...] = ()
    terms: TermsView
    staging: StagingView | None = None  # none: nothing is staged
    run_time: RunTimeView | None = None  # none: too few earlier runs are known
    why: str = ""
    after: tuple[str, ...] = ()  # the sessions that must have completed first
    options: tuple[str, ...] = ()  # the phases to which the person can move it
    page: str = ""  # where a person can look at it
    token: str = ""  # for this session only; shown once, in a gateway's answer to accept


@dataclass(frozen=True, kw_only=True)
class SessionPage:
    """A page of sessions, newest first; `next` continues where it ends."""

    items: tuple[SessionView, ...]
    next: str | None = None
