"""The views of running apps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sublet.booking.views.sessions import SessionView


@dataclass(frozen=True, kw_only=True)
class AppAsk:
    """A request for offers for an app; fields left out are as in its manifest."""

    version: str = ""  # its number; empty: the newest approved one
    hpc: str = ""  # the platform; empty: any
    name: str = ""
    set: dict[str, Any] = field(default_factory=dict)  # parameters with their types
    words: dict[str, str] = field(default_factory=dict)  # parameters as text, converted by the app's schema
    data: dict[str, str] = field(default_factory=dict)  # name of an input → its location
    places: tuple[str, ...] = ()  # directories of the system that it should see
    outputs: tuple[dict[str, Any], ...] = ()  # results to send somewhere: {path, to, when}
    resources: dict[str, Any] = field(default_factory=dict)  # nodes, tasks, cores, memory, gpus, time
    scheduler: dict[str, Any] = field(default_factory=dict)  # constraint, nice, …, as in a request


@dataclass(frozen=True, kw_only=True)
class StartedView:
    """A session that was started at once, and a token for it only, which isn't shown again."""

    session: SessionView
    token: str
