"""Views of events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class EventView:
    """Something that happened to a session: a fact in the past tense."""

    id: int
    time: datetime
    session: str
    person: str
    kind: str
    detail: str = ""
    phase: str = ""


@dataclass(frozen=True, kw_only=True)
class EventPage:
    """A page of events, oldest first; `next` is the id to continue after."""

    items: tuple[EventView, ...]
    next: int | None = None
