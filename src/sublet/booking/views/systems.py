"""Views of systems: probes, and their record of predicted starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True, kw_only=True)
class DifferenceView:
    """One fact, as it was known and as the live system reports it; empty: not stated."""

    subject: str
    what: str
    known: str
    live: str
    state: str  # same, different, unknown
    nodes_of: str = ""  # the queue whose nodes it is about, if it is about nodes


@dataclass(frozen=True, kw_only=True)
class LiveNodeView:
    """One kind of node in a queue."""

    name: str
    cores: int
    memory: int
    gpus: int = 0
    count: int


@dataclass(frozen=True, kw_only=True)
class LiveQueueView:
    """A queue, as the live system reports it; a limit that it doesn't show is null."""

    name: str
    sharing: str
    nodes: tuple[LiveNodeView, ...]
    min_nodes: int | None = None
    max_nodes: int | None = None
    max_time: timedelta | None = None
    max_cores: int | None = None
    max_gpus: int | None = None
    per_user: dict[str, int] = field(default_factory=dict)  # limits on all jobs of one user together


@dataclass(frozen=True, kw_only=True)
class ProbeView:
    """A live system, compared with what was known of it."""

    system: str
    as_of: datetime
    version: str
    default_queue: str
    accounts: tuple[str, ...]
    tools: dict[str, str]  # name → version or path
    queues: tuple[LiveQueueView, ...]
    differences: tuple[DifferenceView, ...]
    gpu_types: tuple[str, ...] = ()  # like features and licenses, these can be requested
    features: tuple[str, ...] = ()
    licenses: dict[str, int] = field(default_factory=dict)  # how many there are of each
    can_reserve: bool = False  # whether you may make reservations there, which can hold offers


@dataclass(frozen=True, kw_only=True)
class TrackView:
    """How late the starts of one queue and size class were; without a track record there are no percentiles."""

    queue: str
    size: str
    samples: int
    p10: timedelta | None = None  # actual minus planned: negative is sooner
    p50: timedelta | None = None
    p90: timedelta | None = None


@dataclass(frozen=True, kw_only=True)
class RecordView:
    """A system's track record of predicted starts."""

    system: str
    days: int  # how long a start counts
    enough: int  # starts that make a track record
    items: tuple[TrackView, ...]
    notes: tuple[str, ...] = ()  # of the last survey: what the site's own settings require, and what can't be seen
