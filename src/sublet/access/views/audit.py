"""The audit log: who did what."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, kw_only=True)
class AuditView:
    """One act."""

    id: int
    time: datetime
    person: str  # who did it; empty: nobody who is known
    action: str
    noun: str
    name: str
    host: str
    detail: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class AuditPage:
    """Acts in the order in which they were written down."""

    items: tuple[AuditView, ...]
    next: int | None = None  # what to go on `after`
