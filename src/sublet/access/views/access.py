"""The views of access rules, standings, and requests for access."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True, kw_only=True)
class LimitsView:
    """The most of each amount; null: no limit. Limits of a session are totals over all its nodes."""

    cores: int | None = None
    memory: int | None = None  # bytes
    gpus: int | None = None
    nodes: int | None = None
    time: timedelta | None = None
    hours: float | None = None  # core-hours of one session
    jobs: int | None = None  # concurrent sessions
    hours_month: float | None = None  # core-hours in a calendar month (UTC)


@dataclass(frozen=True, kw_only=True)
class RuleView:
    """An access rule."""

    id: str
    effect: str  # allow or deny
    who: str  # *@illinois.edu, group:NAME, or a person's name
    noun: str  # system, account, pledge, app, place or project
    name: str
    limits: LimitsView
    created: datetime
    expires: datetime | None = None
    by: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class RuleAsk:
    """An access rule to add."""

    effect: str
    who: str
    noun: str
    name: str
    limits: LimitsView = field(default_factory=LimitsView)
    expires: datetime | None = None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class RuleList:
    """Access rules, oldest first."""

    items: tuple[RuleView, ...]


@dataclass(frozen=True, kw_only=True)
class RunningView:
    """A session that continues although its owner has lost access to its platform."""

    session: str
    name: str
    person: str
    platform: str
    phase: str


@dataclass(frozen=True, kw_only=True)
class RuleChange:
    """A rule that was added or removed, with notes, and the sessions that continue without access."""

    rule: RuleView
    notes: tuple[str, ...] = ()
    running: tuple[RunningView, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AccessView:
    """A person's standing with one target: whether they may use it, by which rules, how much, and what is left."""

    noun: str
    name: str
    allowed: bool
    why: str
    how: str = ""  # how to get access, if they have none
    rules: tuple[str, ...] = ()  # the ids of the deciding rules
    limits: LimitsView
    limit_rules: dict[str, str] = field(default_factory=dict)  # amount → the rule that sets its limit
    jobs: int = 0  # active sessions
    hours: float = 0.0  # core-hours used and reserved this month
    asked: str = ""  # the open request for access


@dataclass(frozen=True, kw_only=True)
class AccessList:
    """What someone may and may not use."""

    person: str
    items: tuple[AccessView, ...]


@dataclass(frozen=True, kw_only=True)
class AccessAsk:
    """A request for access to make."""

    name: str
    noun: str = ""  # empty: any target of this name
    why: str


@dataclass(frozen=True, kw_only=True)
class AccessAnswer:
    """The decision on a request: what is granted, and the answer to the person."""

    limits: LimitsView = field(default_factory=LimitsView)
    expires: datetime | None = None
    answer: str = ""


@dataclass(frozen=True, kw_only=True)
class AccessRequestView:
    """A request for access."""

    id: str
    person: str
    noun: str
    name: str
    why: str
    created: datetime
    state: str  # open, granted or refused
    decided: datetime | None = None
    by: str = ""
    answer: str = ""
    rule: str = ""


@dataclass(frozen=True, kw_only=True)
class AccessRequestList:
    """Requests for access, newest first."""

    items: tuple[AccessRequestView, ...]


@dataclass(frozen=True, kw_only=True)
class AccessAsked:
    """A request for access, with notes."""

    request: AccessRequestView
    notes: tuple[str, ...] = ()
