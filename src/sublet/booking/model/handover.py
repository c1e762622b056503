"""A session that its owner wants to give to someone else."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class HandOver:
    """A hand-over: who gives which session to whom."""

    session: str
    giver: str
    taker: str
    created: datetime
