"""The views of usage."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class UsedView:
    """What one person used of one platform in one quarter."""

    quarter: str
    platform: str
    person: str
    sessions: int  # that ran in it
    running: int = 0  # of these, still running
    core_hours: float = 0.0
    node_hours: float = 0.0
    gpu_hours: float = 0.0


@dataclass(frozen=True, kw_only=True)
class QuarterView:
    """One platform in one quarter, all people together, as allocation reports need it."""

    quarter: str
    platform: str
    people: int
    sessions: int
    core_hours: float = 0.0
    node_hours: float = 0.0
    gpu_hours: float = 0.0


@dataclass(frozen=True, kw_only=True)
class UsageReport:
    """The usage in a period; sessions that span quarters are divided between them."""

    since: datetime
    until: datetime
    items: tuple[UsedView, ...]
    totals: tuple[QuarterView, ...]
