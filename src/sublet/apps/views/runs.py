"""Running apps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sublet.booking.views.sessions import SessionView


@dataclass(frozen=True, kw_only=True)
class AppAsk:
    """Asks for offers for an app; what is left out is as its manifest says."""

    version: str = ""  # its number; empty: the newest that was approved
    hpc: str = ""  # the platform; empty: any
    name: str = ""
    set: dict[str, Any] = field(default_factory=dict)  # parameters, as they are
    words: dict[str, str] = field(default_factory=dict)  # parameters as text, typed by the app's schema
    data: dict[str, str] = field(default_factory=dict)  # the name of an input → where it is
    places: tuple[str, ...] = ()  # directories of the system that it is to see
    outputs: tuple[dict[str, Any], ...] = ()  # results that are sent somewhere: {path, to, when}
    resources: dict[str, Any] = field(default_factory=dict)  # nodes, tasks, cores, memory, gpus, time
    scheduler: dict[str, Any] = field(default_factory=dict)  # constraint, nice, …: as a request has them


@dataclass(frozen=True, kw_only=True)
class StartedView:
    """A session that was started at once, and a token that is for it alone, which is shown here only."""

    session: SessionView
    token: str
