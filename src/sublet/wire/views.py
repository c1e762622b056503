"""What a person sees under /v1: sent by the api, read by the client, drawn by the command line and the pages.

Plain dataclasses, because the command line must not wait for pydantic. In JSON an instant is ISO 8601 in UTC with a Z,
a duration is ISO 8601 (`PT1H30M`), and memory, sizes and storage are bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True, kw_only=True)
class QuoteView:
    """A cost, or a performance: what it is, and between which bounds."""

    type: str
    min: float
    max: float
    description: str = ""


@dataclass(frozen=True, kw_only=True)
class TermsView:
    """On which terms an offer is made: booked, predicted or remote."""

    kind: str
    p10: datetime | None = None  # predicted: one start in ten is before this
    p50: datetime | None = None
    p90: datetime | None = None
    samples: int = 0  # under 20 is no track record
    as_of: datetime | None = None  # how old the survey behind a prediction is
    url: str = ""  # remote: where the other broker has it
    expires: datetime | None = None  # remote: until when the other broker holds it


@dataclass(frozen=True, kw_only=True)
class ReasonView:
    """Why not: the field, what was wanted, the limit, and the nearest thing that would be a YES."""

    kind: str
    field: str
    message: str
    wanted: str = ""
    limit: str = ""
    nearest: str = ""
    platform: str = ""


@dataclass(frozen=True, kw_only=True)
class OfferView:
    """One answer to a request: there, then, like this, at this price. Its id is that of the session it can become."""

    id: str
    short: str  # as much of the id as a person needs to type
    phase: str
    platform: str
    way: str
    start: datetime
    latest_start: datetime
    duration: timedelta
    until: datetime  # the end, if it begins at its earliest
    prepare: timedelta
    nodes: tuple[str, ...]  # exact nodes; empty where the platform chooses
    cores: int  # per node
    memory: int  # per node
    gpus: int  # per node
    storage: dict[str, int] = field(default_factory=dict)
    costs: tuple[QuoteView, ...] = ()
    metrics: tuple[QuoteView, ...] = ()
    terms: TermsView
    why: str
    expires: datetime


@dataclass(frozen=True, kw_only=True)
class OfferSetView:
    """The whole answer to a request: YES with offers, or NO with reasons."""

    id: str
    result: str  # YES or NO
    name: str = ""
    kind: str = ""  # the executable's short kind
    person: str = ""
    created: datetime
    expires: datetime | None = None  # until when the offers are held; none for a NO
    offers: tuple[OfferView, ...] = ()
    reasons: tuple[ReasonView, ...] = ()  # also with a YES: why other platforms said no
    notes: tuple[str, ...] = ()  # in words: what was assumed, or left out
    page: str = ""  # where a person can look at it


@dataclass(frozen=True, kw_only=True)
class UsageView:
    """What a session used: seconds, seconds of CPU, and bytes at most."""

    wall: float = 0.0
    cpu: float = 0.0
    peak_memory: int = 0


@dataclass(frozen=True, kw_only=True)
class EndView:
    """How a session ended, for programs, and as a sentence for people."""

    kind: str
    code: int | None = None
    signal: int | None = None
    by: str = ""
    detail: str = ""
    sentence: str = ""
    usage: UsageView | None = None


@dataclass(frozen=True, kw_only=True)
class ConnectorView:
    """A way in to a running session."""

    kind: str
    status: str
    protocol: str
    location: str


@dataclass(frozen=True, kw_only=True)
class SessionView:
    """A session: what was accepted, and what has become of it."""

    id: str
    short: str  # as much of the id as a person needs to type
    offerset: str
    person: str
    name: str
    kind: str  # the executable's short kind
    phase: str
    condition: str = ""  # in words, beside the phase
    platform: str
    way: str
    nodes: tuple[str, ...]
    cores: int  # per node
    memory: int  # per node
    gpus: int  # per node
    storage: dict[str, int] = field(default_factory=dict)
    duration: timedelta
    created: datetime
    modified: datetime
    expires: datetime  # of the offer; it counts while OFFERED
    start: datetime | None = None  # when it is to start
    until: datetime | None = None  # when its booked time ends
    started: datetime | None = None  # when it did start
    ended: datetime | None = None
    job: str = ""  # the platform's own id
    end: EndView | None = None
    connectors: tuple[ConnectorView, ...] = ()
    costs: tuple[QuoteView, ...] = ()
    metrics: tuple[QuoteView, ...] = ()
    terms: TermsView
    why: str = ""
    options: tuple[str, ...] = ()  # the phases that it can be moved to, by who sees this
    page: str = ""  # where a person can look at it


@dataclass(frozen=True, kw_only=True)
class SessionPage:
    """Some of the sessions, newest first; `next` goes on where they end."""

    items: tuple[SessionView, ...]
    next: str | None = None


@dataclass(frozen=True, kw_only=True)
class EventView:
    """Something that happened to a session: a fact in the past tense."""

    id: int
    time: datetime
    session: str
    person: str
    kind: str
    detail: str = ""
    phase: str = ""


@dataclass(frozen=True, kw_only=True)
class EventPage:
    """Some of the events, oldest first; `next` is the id to go on after."""

    items: tuple[EventView, ...]
    next: int | None = None


@dataclass(frozen=True, kw_only=True)
class ResultFileView:
    """A file that a session left."""

    path: str
    size: int
    modified: datetime


@dataclass(frozen=True, kw_only=True)
class ResultList:
    """The files that a session left."""

    items: tuple[ResultFileView, ...]


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why a session is where it is, in sentences."""

    session: str
    phase: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class NodeView:
    """One machine and all it has."""

    name: str
    cores: int
    memory: int
    gpus: int = 0


@dataclass(frozen=True, kw_only=True)
class PlatformView:
    """A platform, as of its last survey."""

    name: str
    kind: str
    terms: str
    working: bool = True
    problem: str = ""  # when it is not working: why
    as_of: datetime | None = None
    nodes: tuple[NodeView, ...] = ()
    pools: dict[str, int] = field(default_factory=dict)  # storage pool → bytes
    tools: dict[str, str] = field(default_factory=dict)
    metrics: tuple[QuoteView, ...] = ()
    notes: tuple[str, ...] = ()
    contained_only: bool = False


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
class BusyView:
    """A part of a node or pool that is taken, for a half-open time."""

    start: datetime
    end: datetime
    cores: int = 0
    memory: int = 0
    gpus: int = 0
    size: int = 0


@dataclass(frozen=True, kw_only=True)
class LaneView:
    """One node, or one storage pool, with its busy times."""

    name: str
    pool: bool = False
    cores: int = 0
    memory: int = 0
    gpus: int = 0
    size: int = 0
    busy: tuple[BusyView, ...] = ()


@dataclass(frozen=True, kw_only=True)
class CalendarView:
    """What is taken on a platform between two instants; by whom is not said."""

    platform: str
    start: datetime
    end: datetime
    lanes: tuple[LaneView, ...]


@dataclass(frozen=True, kw_only=True)
class TokenView:
    """A token; its text is there once, when it is made."""

    id: str
    person: str
    note: str = ""
    created: datetime
    expires: datetime | None = None
    token: str = ""


@dataclass(frozen=True, kw_only=True)
class TokenList:
    """Tokens, without their texts."""

    items: tuple[TokenView, ...]


@dataclass(frozen=True, kw_only=True)
class TokenAsk:
    """Asks for a token: for whom (oneself if empty) and for how long (`30d`; none: the service's default)."""

    person: str = ""
    expires: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class ExtendAsk:
    """Asks for more time: by a duration (`30m`), or until an instant; one of the two."""

    by: str = ""
    until: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class WhoView:
    """Who the service takes the caller for."""

    person: str
    mode: str  # personal or gateway
    operator: bool = False  # may see and do what concerns everyone


@dataclass(frozen=True, kw_only=True)
class HealthView:
    """That the service is there, and what it serves."""

    status: str
    version: str
    mode: str
    platforms: tuple[str, ...] = ()
