"""Access: rules, how someone stands by them, and requests to be let in."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True, kw_only=True)
class LimitsView:
    """The most of each amount; none: as much as there is. Those of a session are over all its nodes together."""

    cores: int | None = None
    memory: int | None = None  # bytes
    gpus: int | None = None
    nodes: int | None = None
    time: timedelta | None = None
    hours: float | None = None  # core-hours of one session
    jobs: int | None = None  # sessions at once
    hours_month: float | None = None  # core-hours in a calendar month (UTC)


@dataclass(frozen=True, kw_only=True)
class RuleView:
    """An access rule."""

    id: str
    effect: str  # allow or deny
    who: str  # *@illinois.edu, group:NAME, or a person's name
    noun: str  # system, account, pledge or app
    name: str
    limits: LimitsView
    created: datetime
    expires: datetime | None = None
    by: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class RuleAsk:
    """Asks for an access rule."""

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
    """A session that goes on although its owner has lost access to what it runs on."""

    session: str
    name: str
    person: str
    platform: str
    phase: str


@dataclass(frozen=True, kw_only=True)
class RuleChange:
    """A rule that was added or removed, what there is to say to it, and what runs on."""

    rule: RuleView
    notes: tuple[str, ...] = ()
    running: tuple[RunningView, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AccessView:
    """How someone stands with one target: whether they may use it, by which rules, how much, and what is left."""

    noun: str
    name: str
    allowed: bool
    why: str
    how: str = ""  # to get access, where they have none
    rules: tuple[str, ...] = ()  # the ids of those that decided
    limits: LimitsView
    limit_rules: dict[str, str] = field(default_factory=dict)  # an amount → the rule that its limit comes from
    jobs: int = 0  # sessions under way
    hours: float = 0.0  # core-hours used and reserved this month
    asked: str = ""  # the request for access that is open


@dataclass(frozen=True, kw_only=True)
class AccessList:
    """What someone may use, and what not."""

    person: str
    items: tuple[AccessView, ...]


@dataclass(frozen=True, kw_only=True)
class AccessAsk:
    """Asks to be let in."""

    name: str
    noun: str = ""  # none: whatever is called so
    why: str


@dataclass(frozen=True, kw_only=True)
class AccessAnswer:
    """Decides on a request: what is granted, and what its asker is told."""

    limits: LimitsView = field(default_factory=LimitsView)
    expires: datetime | None = None
    answer: str = ""


@dataclass(frozen=True, kw_only=True)
class AccessRequestView:
    """A request to be let in."""

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
    """Requests to be let in, newest first."""

    items: tuple[AccessRequestView, ...]


@dataclass(frozen=True, kw_only=True)
class AccessAsked:
    """A request as it is now, and what there is to say to it."""

    request: AccessRequestView
    notes: tuple[str, ...] = ()
