"""Sessions that change hands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class HandOverAsk:
    """Which session is to be whose."""

    session: str
    to: str


@dataclass(frozen=True, kw_only=True)
class HandOverView:
    """A session that its owner wants to give to someone."""

    session: str
    giver: str
    taker: str
    created: datetime


@dataclass(frozen=True, kw_only=True)
class HandOverList:
    """What the asker wants to give, or could take."""

    items: tuple[HandOverView, ...]
