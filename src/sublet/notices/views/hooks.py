"""Views of notifications."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class ToldView:
    """One event that was, or will be, delivered to a hook."""

    event: int
    tries: int
    tried: datetime | None = None
    next: datetime | None = None  # the time of the next try; null: finished
    answer: str = ""


@dataclass(frozen=True, kw_only=True)
class HookView:
    """A notification; its secret is present only in the answer that creates it."""

    id: str
    session: str  # empty: all of the person's sessions
    address: str  # an http(s) address, or mailto:…
    on: tuple[str, ...]
    created: datetime
    expires: datetime
    trouble: str = ""  # why it was given up
    told: tuple[ToldView, ...] = ()  # the last few, newest first
    secret: str = ""


@dataclass(frozen=True, kw_only=True)
class HookList:
    """Notifications, without their secrets."""

    items: tuple[HookView, ...]


@dataclass(frozen=True, kw_only=True)
class HookAsk:
    """Asks for a notification to an https address, or to `mailto:` and one's own; if `on` is empty, on each change."""

    address: str
    session: str = ""
    on: tuple[str, ...] = ()
    expires: str = ""  # how long it lasts, such as 30d; empty: the service's default


@dataclass(frozen=True, kw_only=True)
class HookTestView:
    """A hook's answer to a test."""

    answer: str
