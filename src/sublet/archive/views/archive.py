"""Views of the archive."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class SessionRecordView:
    """One ended session. Durations are in seconds, sizes in bytes; unknown values are null."""

    session: str
    who: str  # the owner's pseudonym; empty: erased
    person: str = ""  # the owner, as long as that is kept
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
    """A page of records, in the order of their requests."""

    items: tuple[SessionRecordView, ...]
    next: str | None = None  # the cursor to pass as `after`


@dataclass(frozen=True, kw_only=True)
class CalibrationView:
    """How often predictions came true, on one platform and queue."""

    platform: str
    queue: str = ""
    starts: int = 0  # predicted starts
    inside: int = 0  # between the 10th and the 90th percentile: 80 % is right
    earlier: int = 0
    later: int = 0
    stagings: int = 0  # stagings that were predicted to take at least a second
    staged_in_time: int = 0  # within the 90th percentile: 90 % is right
    runs: int = 0  # with a predicted run time
    runs_inside: int = 0  # between the 10th and the 90th percentile: 80 % is right
    runs_shorter: int = 0
    runs_longer: int = 0  # including those that ran out of time


@dataclass(frozen=True, kw_only=True)
class CalibrationList:
    """The calibration of each platform and queue."""

    items: tuple[CalibrationView, ...]


@dataclass(frozen=True, kw_only=True)
class ErasedView:
    """How much of a person's data was erased."""

    records: int  # made anonymous, or removed
    details: int  # names and requests that were removed
