"""The views of the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, kw_only=True)
class AuditView:
    """One action."""

    id: int
    time: datetime
    person: str  # who did it; empty: nobody known
    action: str
    noun: str
    name: str
    host: str
    detail: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class AuditPage:
    """Actions, in the order in which they were recorded."""

    items: tuple[AuditView, ...]
    next: int | None = None  # the `after` of the next page
