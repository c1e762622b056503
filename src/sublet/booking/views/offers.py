"""Views of offers, offer sets, and reasons for a NO."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sublet.booking.model.gpu_sorts import GpuSort
from sublet.booking.views.quotes import QuoteView, RunTimeView, StagingView, TermsView


@dataclass(frozen=True, kw_only=True)
class ReasonView:
    """A reason for a NO: the field, what was wanted, the limit, and the nearest possible value."""

    kind: str
    field: str
    message: str
    wanted: str = ""
    limit: str = ""
    nearest: str = ""
    platform: str = ""
    as_of: datetime | None = None  # when the facts behind it were seen, if that is a while ago


@dataclass(frozen=True, kw_only=True)
class OfferView:
    """An answer to a request: where, when, and at which price. Its id is that of the session that it can become."""

    id: str
    short: str  # as much of the id as a person needs to type
    phase: str
    platform: str
    pledge: str = ""  # the platform's pledges that it draws on: `srcnet`, `srcnet + open`; empty: the platform has none
    way: str
    start: datetime
    latest_start: datetime
    duration: timedelta
    until: datetime  # the end, if it begins at its earliest
    prepare: timedelta
    nodes: tuple[str, ...]  # exact nodes; empty if the platform chooses
    cores: int  # per node
    memory: int  # per node
    gpus: int  # per node
    gpu_sorts: tuple[GpuSort, ...] = ()  # they are of one of these; empty: unknown
    disk: int = 0  # bytes of local disk, per node
    storage: dict[str, int] = field(default_factory=dict)
    pools: dict[str, str] = field(default_factory=dict)  # the pool in which each storage is booked
    costs: tuple[QuoteView, ...] = ()
    metrics: tuple[QuoteView, ...] = ()
    terms: TermsView
    staging: StagingView | None = None  # none: nothing is staged
    run_time: RunTimeView | None = None  # none: too few earlier runs are known
    why: str
    is_here: bool = False  # on the machine of the service itself
    needs_login: bool = False  # a person must sign in there first
    expires: datetime


@dataclass(frozen=True, kw_only=True)
class RunWayView:
    """One way to run a request on one platform, and why it is not possible."""

    platform: str
    way: str
    possible: bool
    why: str = ""


@dataclass(frozen=True, kw_only=True)
class RunWayList:
    """All ways on all platforms."""

    items: tuple[RunWayView, ...] = ()


@dataclass(frozen=True, kw_only=True)
class OfferSetView:
    """The whole answer to a request: YES with offers, or NO with reasons."""

    id: str
    result: str  # YES or NO
    name: str = ""
    kind: str = ""  # the executable's short kind
    person: str = ""
    created: datetime
    expires: datetime | None = None  # when the offers expire; none for a NO
    offers: tuple[OfferView, ...] = ()
    reasons: tuple[ReasonView, ...] = ()  # also with a YES: why other platforms said NO
    notes: tuple[str, ...] = ()  # in words: what was assumed, or left out
    unanswered: tuple[str, ...] = ()  # platforms that gave no answer, or not in time
    platform: str = ""  # the platform that the request names; empty: all were asked
    prefer: str = "soonest"  # how the offers are sorted, the best first: soonest, here or cheapest
    page: str = ""  # where a person can look at it


@dataclass(frozen=True, kw_only=True)
class OfferSetPage:
    """The offer sets with open offers, newest first, each with only its open offers."""

    items: tuple[OfferSetView, ...]


@dataclass(frozen=True, kw_only=True)
class RejectedView:
    """How many offers were rejected."""

    offers: int


@dataclass(frozen=True, kw_only=True)
class PendingView:
    """A request that is being answered."""

    since: datetime
    waiting: tuple[str, ...]  # platforms that have not answered yet


@dataclass(frozen=True, kw_only=True)
class PendingList:
    """The person's requests that are being answered now."""

    items: tuple[PendingView, ...]
