"""Hooks: who is told of changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class ToldView:
    """One event that a hook was told, or is to be."""

    event: int
    tries: int
    tried: datetime | None = None
    next: datetime | None = None  # when it is tried again; none: over
    answer: str = ""


@dataclass(frozen=True, kw_only=True)
class HookView:
    """Someone who is told; the secret is there once, when it is made."""

    id: str
    session: str  # empty: all of the person's
    address: str  # an http(s) address, or mailto:…
    on: tuple[str, ...]
    created: datetime
    expires: datetime
    trouble: str = ""  # why it was given up
    told: tuple[ToldView, ...] = ()  # the last few, newest first
    secret: str = ""


@dataclass(frozen=True, kw_only=True)
class HookList:
    """Hooks, without their secrets."""

    items: tuple[HookView, ...]


@dataclass(frozen=True, kw_only=True)
class HookAsk:
    """Asks to be told: `address` is an https address, or `mailto:` and one's own; `on` is empty for each change."""

    address: str
    session: str = ""
    on: tuple[str, ...] = ()
    expires: str = ""  # how long it lasts, as in 30d; empty: the service's default


@dataclass(frozen=True, kw_only=True)
class HookTestView:
    """What a hook answered to a test."""

    answer: str
