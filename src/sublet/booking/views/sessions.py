"""Sessions: what was accepted, and what has become of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sublet.booking.model.gpu_sorts import GpuSort
from sublet.booking.views.quotes import QuoteView, RunTimeView, StagingView, TermsView


@dataclass(frozen=True, kw_only=True)
class UsageView:
    """What a session used: seconds, seconds of CPU, bytes at most, kWh, and grams of CO2 for those."""

    wall: float = 0.0
    cpu: float = 0.0
    peak_memory: int = 0
    energy: float = 0.0
    carbon: float = 0.0
    energy_source: str = ""  # measured, or settings: by what the operator says of a core; empty: not known


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
    """A way in to a running session."""

    kind: str
    status: str
    protocol: str
    location: str


@dataclass(frozen=True, kw_only=True)
class SessionView:
    """A session: what was accepted, and what has become of it."""

    id: str
    short: str  # as much of the id as a person needs to type
    offerset: str
    person: str
    name: str
    kind: str  # the executable's short kind
    phase: str
    condition: str = ""  # in words, beside the phase
    marks: tuple[str, ...] = ()  # for programs: paused, warned, lost, login-needed, unreachable, held-back
    platform: str
    pledge: str = ""  # the parts of it that are drawn on: `srcnet`, `srcnet + open`; none: it has no such parts
    way: str
    nodes: tuple[str, ...]
    cores: int  # per node
    memory: int  # per node
    gpus: int  # per node
    gpu_sorts: tuple[GpuSort, ...] = ()  # of one of which they are; none: nothing is known of them
    disk: int = 0  # per node, of its own, in bytes
    storage: dict[str, int] = field(default_factory=dict)
    pools: dict[str, str] = field(default_factory=dict)  # of each storage, the pool that it is booked in
    duration: timedelta
    created: datetime
    modified: datetime
    expires: datetime  # of the offer; it counts while OFFERED
    start: datetime | None = None  # when it is to start
    until: datetime | None = None  # when its booked time ends
    started: datetime | None = None  # when it did start
    ended: datetime | None = None
    job: str = ""  # the platform's own id
    end: EndView | None = None
    connectors: tuple[ConnectorView, ...] = ()
    costs: tuple[QuoteView, ...] = ()
    metrics: tuple[QuoteView, ...] = ()
    terms: TermsView
    staging: StagingView | None = None  # none: there is nothing to bring
    run_time: RunTimeView | None = None  # none: too few earlier runs are known
    why: str = ""
    after: tuple[str, ...] = ()  # the sessions that must have completed first
    options: tuple[str, ...] = ()  # the phases that it can be moved to, by who sees this
    page: str = ""  # where a person can look at it
    token: str = ""  # for this session only: there once, in a gateway's answer to accept


@dataclass(frozen=True, kw_only=True)
class SessionPage:
    """Some of the sessions, newest first; `next` goes on where they end."""

    items: tuple[SessionView, ...]
    next: str | None = None
