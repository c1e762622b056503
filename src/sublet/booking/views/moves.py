"""What is said to and of a session beside what it is: why it is there, and more time for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sublet.booking.views.sessions import SessionView


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
class CancelAsk:
    """Asks to stop a session; its owner sees the reason."""

    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class CancelAllAsk:
    """Asks to stop several sessions, by their ids; with `dry_run` nothing is done."""

    sessions: tuple[str, ...]
    reason: str = ""
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True)
class CancelView:
    """Which sessions are being cancelled, or would be; `over` had ended, or were being cancelled already."""

    cancelled: tuple[SessionView, ...]
    over: tuple[SessionView, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True)
class ExtendAsk:
    """Asks for more time: by a duration (`30m`), or until an instant; one of the two."""

    by: str = ""
    until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class AgainAsk:
    """Asks for the same once more; what is left out stays, except a start, which is then as soon as possible."""

    cores: int | str = ""
    memory: str = ""
    gpus: int | str = ""
    nodes: int | str = ""
    time: str = ""
    start: str = ""
    platform: str = ""
    queue: str = ""
    project: str = ""
    name: str = ""
    set: dict[str, Any] = field(default_factory=dict)  # parameters, as they are
    words: dict[str, str] = field(default_factory=dict)  # parameters as text, typed like what they replace
    scheduler: dict[str, Any] = field(default_factory=dict)  # constraint, nice, …: as a request has them
