"""Views of hand-overs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class HandOverAsk:
    """A session to hand over, and its new owner."""

    session: str
    to: str


@dataclass(frozen=True, kw_only=True)
class HandOverView:
    """A session that its owner offers to someone."""

    session: str
    giver: str
    taker: str
    created: datetime


@dataclass(frozen=True, kw_only=True)
class HandOverList:
    """The sessions that the person offers, and those offered to the person."""

    items: tuple[HandOverView, ...]
