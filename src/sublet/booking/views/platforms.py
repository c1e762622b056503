"""Views of platforms: what they have, and when it is taken."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from sublet.booking.views.quotes import QuoteView


@dataclass(frozen=True, kw_only=True)
class NodeView:
    """One node, and all that it has."""

    name: str
    cores: int
    memory: int
    gpus: int = 0
    disk: int = 0  # bytes of local disk


@dataclass(frozen=True, kw_only=True)
class DrainAsk:
    """A request to drain a platform, until an instant or until it is undrained.

    With `now`, sessions that still run after the `grace` (`10m`) are cancelled; else they finish.
    """

    until: datetime | None = None
    reason: str = ""
    now: bool = False
    grace: str = ""


@dataclass(frozen=True, kw_only=True)
class DrainView:
    """The drain of a platform, on which nothing new starts."""

    since: datetime
    until: datetime | None = None  # when it ends automatically
    reason: str = ""
    ends: datetime | None = None  # when running sessions are cancelled
    sentence: str = ""


@dataclass(frozen=True, kw_only=True)
class PlatformView:
    """A platform, as of its last survey."""

    name: str
    kind: str
    terms: str
    working: bool = True
    problem: str = ""  # why it is not working
    needs_login: bool = False  # a person must sign in before anything can be started there
    trouble: str = ""  # why it can't be asked now; the other facts were seen before, at `as_of`
    as_of: datetime | None = None
    nodes: tuple[NodeView, ...] = ()
    pools: dict[str, int] = field(default_factory=dict)  # storage pool → bytes
    tools: dict[str, str] = field(default_factory=dict)
    metrics: tuple[QuoteView, ...] = ()
    notes: tuple[str, ...] = ()
    contained_only: bool = False
    ask: str = ""  # how to get access, if the person only sees its name
    drain: DrainView | None = None  # while it is drained, it makes no offers and starts nothing


@dataclass(frozen=True, kw_only=True)
class PlatformList:
    """The platforms that this service asks."""

    items: tuple[PlatformView, ...]


@dataclass(frozen=True, kw_only=True)
class CheckView:
    """One rule of the conformance suite, tried on the live platform."""

    rule: str
    ok: bool
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class CheckList:
    """All rules that were tried."""

    items: tuple[CheckView, ...]


@dataclass(frozen=True, kw_only=True)
class SweptView:
    """What was removed from a platform, because no session needs it."""

    sessions: tuple[str, ...]  # sessions whose directories were left there
    files: tuple[str, ...]  # shared files, by their digests


@dataclass(frozen=True, kw_only=True)
class BusyView:
    """A part of a node or pool that is taken, for a half-open time."""

    start: datetime
    end: datetime
    cores: int = 0
    memory: int = 0
    gpus: int = 0
    disk: int = 0  # bytes of local disk
    size: int = 0


@dataclass(frozen=True, kw_only=True)
class LaneView:
    """One node, or one storage pool, with its busy times."""

    name: str
    pool: bool = False
    cores: int = 0
    memory: int = 0
    gpus: int = 0
    disk: int = 0  # bytes of local disk
    size: int = 0
    busy: tuple[BusyView, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CalendarView:
    """What is taken on a platform between two instants, without saying by whom."""

    platform: str
    start: datetime
    end: datetime
    lanes: tuple[LaneView, ...]
