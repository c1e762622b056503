"""Platforms, what they have, and when it is taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from sublet.booking.views.quotes import QuoteView


@dataclass(frozen=True, kw_only=True)
class NodeView:
    """One machine and all it has."""

    name: str
    cores: int
    memory: int
    gpus: int = 0
    disk: int = 0  # bytes of its own


@dataclass(frozen=True, kw_only=True)
class DrainAsk:
    """Asks to drain a platform: until an instant or until it is undrained, and why.

    With `now`, what still runs after the `grace` (`10m`) is cancelled; else it finishes.
    """

    until: datetime | None = None
    reason: str = ""
    now: bool = False
    grace: str = ""


@dataclass(frozen=True, kw_only=True)
class DrainView:
    """A platform that is being drained: nothing new begins there."""

    since: datetime
    until: datetime | None = None  # when it ends by itself
    reason: str = ""
    ends: datetime | None = None  # when what still runs is cancelled
    sentence: str = ""


@dataclass(frozen=True, kw_only=True)
class PlatformView:
    """A platform, as of its last survey."""

    name: str
    kind: str
    terms: str
    working: bool = True
    problem: str = ""  # when it is not working: why
    needs_login: bool = False  # a person must sign in before anything can be started there
    trouble: str = ""  # why it can't be asked now: what is shown here was seen before, at `as_of`
    as_of: datetime | None = None
    nodes: tuple[NodeView, ...] = ()
    pools: dict[str, int] = field(default_factory=dict)  # storage pool → bytes
    tools: dict[str, str] = field(default_factory=dict)
    metrics: tuple[QuoteView, ...] = ()
    notes: tuple[str, ...] = ()
    contained_only: bool = False
    ask: str = ""  # for who may not use it, and is told its name alone: how to be let in
    drain: DrainView | None = None  # it is being drained: it makes no offers, and starts nothing


@dataclass(frozen=True, kw_only=True)
class PlatformList:
    """The platforms that this service asks."""

    items: tuple[PlatformView, ...]


@dataclass(frozen=True, kw_only=True)
class CheckView:
    """One rule of the platform's contract, tried on the live thing."""

    rule: str
    ok: bool
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class CheckList:
    """Every rule that was tried."""

    items: tuple[CheckView, ...]


@dataclass(frozen=True, kw_only=True)
class SweptView:
    """What was removed from a platform, because no session needs it."""

    sessions: tuple[str, ...]  # whose directories were left there
    files: tuple[str, ...]  # that sessions shared, by their digests


@dataclass(frozen=True, kw_only=True)
class BusyView:
    """A part of a node or pool that is taken, for a half-open time."""

    start: datetime
    end: datetime
    cores: int = 0
    memory: int = 0
    gpus: int = 0
    disk: int = 0  # bytes of its own
    size: int = 0


@dataclass(frozen=True, kw_only=True)
class LaneView:
    """One node, or one storage pool, with its busy times."""

    name: str
    pool: bool = False
    cores: int = 0
    memory: int = 0
    gpus: int = 0
    disk: int = 0  # bytes of its own
    size: int = 0
    busy: tuple[BusyView, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CalendarView:
    """What is taken on a platform between two instants; by whom is not said."""

    platform: str
    start: datetime
    end: datetime
    lanes: tuple[LaneView, ...]
