"""What is said to and of a session beside what it is: why it is there, and more time for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sublet.wire.v1.sessions import SessionView


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why a session is where it is, in sentences."""

    session: str
    phase: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PauseView:
    """A session that was paused, or goes on, and how: held in its queue, or stopped where it runs."""

    session: SessionView
    how: str


@dataclass(frozen=True, kw_only=True)
class ExtendAsk:
    """Asks for more time: by a duration (`30m`), or until an instant; one of the two."""

    by: str = ""
    until: datetime | None = None
