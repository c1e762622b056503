"""What is kept of sessions beyond their deletion."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class SessionRecordView:
    """One session that is over. Lengths are in seconds, sizes in bytes; what is not known is null."""

    session: str
    who: str  # a pseudonym of its owner; empty: forgotten
    person: str = ""  # its owner, while that is kept
    name: str = ""
    phase: str
    outcome: str
    code: int | None = None
    kind: str
    app: str = ""
    platform: str
    queue: str = ""
    way: str = ""
    terms: str
    pledge: str = ""
    nodes: int
    cores: int
    memory: int
    gpus: int = 0
    parts: int = 1
    time_limit: float
    asked: datetime
    accepted: datetime | None = None
    planned: datetime | None = None
    earliest: datetime | None = None
    latest: datetime | None = None
    started: datetime | None = None
    ended: datetime
    wait: float | None = None
    staging_likely: float = 0.0
    staging_high: float = 0.0
    staged: float | None = None
    run_low: float | None = None
    run_likely: float | None = None
    run_high: float | None = None
    wall: float | None = None
    cpu: float | None = None
    peak_memory: int | None = None
    money: float | None = None
    energy: float | None = None
    carbon: float | None = None
    energy_used: float | None = None
    carbon_used: float | None = None
    energy_source: str | None = None
    offers: str = "[]"


@dataclass(frozen=True, kw_only=True)
class ArchivePage:
    """Records in the order in which they were asked for."""

    items: tuple[SessionRecordView, ...]
    next: str | None = None  # what to go on `after`


@dataclass(frozen=True, kw_only=True)
class CalibrationView:
    """How often what was predicted came true, on one platform and queue."""

    platform: str
    queue: str = ""
    starts: int = 0  # that were predicted
    inside: int = 0  # between the 10th and the 90th percentile: 80 % is right
    earlier: int = 0
    later: int = 0
    stagings: int = 0  # that were predicted to take a moment at least
    staged_in_time: int = 0  # no longer than nine of ten were to take: 90 % is right
    runs: int = 0  # whose length was predicted
    runs_inside: int = 0  # between the 10th and the 90th percentile: 80 % is right
    runs_shorter: int = 0
    runs_longer: int = 0  # those too that ran out of time


@dataclass(frozen=True, kw_only=True)
class CalibrationList:
    """Each platform and queue."""

    items: tuple[CalibrationView, ...]


@dataclass(frozen=True, kw_only=True)
class ErasedView:
    """What was erased of someone."""

    records: int  # that name nobody now, or are gone
    details: int  # names and requests that are gone
