"""Offers, sets of them, and reasons why not."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sublet.booking.model.gpu_sorts import GpuSort
from sublet.booking.views.quotes import QuoteView, RunTimeView, StagingView, TermsView


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
    as_of: datetime | None = None  # when that was seen which it rests on, if that is a while ago


@dataclass(frozen=True, kw_only=True)
class OfferView:
    """One answer to a request: there, then, like this, at this price. Its id is that of the session it can become."""

    id: str
    short: str  # as much of the id as a person needs to type
    phase: str
    platform: str
    pledge: str = ""  # the parts of it that are drawn on: `srcnet`, `srcnet + open`; none: it has no such parts
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
    gpu_sorts: tuple[GpuSort, ...] = ()  # of one of which they are; none: nothing is known of them
    disk: int = 0  # per node, of its own, in bytes
    storage: dict[str, int] = field(default_factory=dict)
    pools: dict[str, str] = field(default_factory=dict)  # of each storage, the pool that it is booked in
    costs: tuple[QuoteView, ...] = ()
    metrics: tuple[QuoteView, ...] = ()
    terms: TermsView
    staging: StagingView | None = None  # none: there is nothing to bring
    run_time: RunTimeView | None = None  # none: too few earlier runs are known
    why: str
    is_here: bool = False  # on the machine of the service itself
    needs_login: bool = False  # a person must sign in there first
    expires: datetime


@dataclass(frozen=True, kw_only=True)
class RunWayView:
    """One way to run something on one platform, and why it is not possible."""

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
    expires: datetime | None = None  # until when offers can be accepted; none for a NO
    offers: tuple[OfferView, ...] = ()
    reasons: tuple[ReasonView, ...] = ()  # also with a YES: why other platforms said no
    notes: tuple[str, ...] = ()  # in words: what was assumed, or left out
    unanswered: tuple[str, ...] = ()  # platforms that gave no answer in time, or could not
    platform: str = ""  # the one that the request names; none: all were asked
    prefer: str = "soonest"  # by what the offers are sorted, the best first: soonest, here or cheapest
    page: str = ""  # where a person can look at it


@dataclass(frozen=True, kw_only=True)
class OfferSetPage:
    """The offer sets of which something can still be accepted, the newest first, each with only that."""

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
    """The asker's requests that are being answered now."""

    items: tuple[PendingView, ...]
