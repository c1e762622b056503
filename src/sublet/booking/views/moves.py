"""Views for explaining, pausing, cancelling, extending and repeating sessions."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sublet.booking.views.sessions import SessionView


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why a session is in its phase, in sentences."""

    session: str
    phase: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PauseView:
    """A session that was paused or resumed, and how: held in its queue, or stopped where it runs."""

    session: SessionView
    how: str


@dataclass(frozen=True, kw_only=True)
class CancelAsk:
    """A request to cancel a session; its owner sees the reason."""

    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class CancelAllAsk:
    """A request to cancel several sessions, by their ids; with `dry_run` nothing is done."""

    sessions: tuple[str, ...]
    reason: str = ""
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True)
class CancelView:
    """The sessions that are being cancelled, or would be; `over` had ended, or were being cancelled already."""

    cancelled: tuple[SessionView, ...]
    over: tuple[SessionView, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True)
class ExtendAsk:
    """A request for more time: by a duration (`30m`), or until an instant, but not both."""

    by: str = ""
    until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class AgainAsk:
    """A request to run the same again; what is left out stays, except `start`, which becomes as soon as possible."""

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
    set: dict[str, Any] = field(default_factory=dict)  # parameters, as JSON values
    words: dict[str, str] = field(default_factory=dict)  # parameters as text, typed like the values that they replace
    scheduler: dict[str, Any] = field(default_factory=dict)  # constraint, nice, …: as in a request
