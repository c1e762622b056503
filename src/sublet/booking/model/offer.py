"""One answer to a request: these resources, this time, this price, on stated terms; or why not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from sublet.booking.model.gpu_sorts import GpuSort
from sublet.booking.model.ranking import Rated
from sublet.booking.model.run_time import RunEstimate, RunHistory
from sublet.booking.model.scheduler import NOTHING_ASKED, SchedulerOptions
from sublet.booking.model.shape import Amounts, HasSizes, Shape
from sublet.booking.model.staging import NOTHING_TO_STAGE, StagingEstimate

HINT = "urn:hint"  # the kind of a reason that is advice: nothing is wrong, and `nearest` would do
IGNORED = "urn:ignored-field"  # the kind of a reason that is a remark only: a field that means nothing was ignored


@dataclass(frozen=True, slots=True)
class Node:
    """One machine and all it has."""

    name: str
    cores: int
    memory: int  # in bytes
    gpus: int = 0
    disk: int = 0  # in bytes, of its own; 0: none that can be asked for


@dataclass(frozen=True, slots=True)
class Take:
    """A part of one node, or of one pool, of storage or of pledged cores, for a half-open time."""

    where: str  # a node's name, or a pool's name
    start: datetime
    end: datetime
    cores: int = 0
    memory: int = 0
    gpus: int = 0
    size: int = 0  # bytes, or cores, of a pool; a take is of a pool exactly when `pool` is true
    pool: bool = False
    disk: int = 0  # bytes of a node's own


def take_of(node: str, start: datetime, end: datetime, sizes: HasSizes) -> Take:
    """So much of a node, for so long."""
    return Take(node, start, end, sizes.cores, sizes.memory, sizes.gpus, disk=sizes.disk)


@dataclass(frozen=True, slots=True)
class Booked:
    """Capacity that is held for the asker until the offer expires: in our calendar, or by a reservation elsewhere."""

    reservation: str = ""  # the key of the platform's own reservation, which the session takes as its id
    kind: Literal["booked"] = "booked"


@dataclass(frozen=True, slots=True)
class Predicted:
    """A queue that others share; nothing is held and the start is an interval."""

    p10: datetime
    p50: datetime
    p90: datetime
    samples: int = 0  # under 20 is no track record
    as_of: datetime | None = None  # how old the survey behind it is
    planned: datetime | None = None  # what the scheduler itself said, before its record was looked at
    kind: Literal["predicted"] = "predicted"


@dataclass(frozen=True, slots=True)
class Remote:
    """Another broker's offer: where that has it, and on which terms it made it."""

    url: str  # of the session there
    expires: datetime  # until when that broker lets it be accepted
    platform: str = ""  # where it would run, as that broker calls it
    inner: Terms | None = None  # as that broker stated them; None: it stated none
    held: bool = False  # whether that broker says that it holds it
    maker: str = ""  # the proof of the broker that made it, through however many others it came; empty: there is none
    components: Mapping[str, Any] = field(default_factory=dict)  # of its document, where this service can't write them
    kind: Literal["remote"] = "remote"


Terms = Booked | Predicted | Remote


def find_first_terms(terms: Terms | None) -> Booked | Predicted | None:
    """The terms of whoever made the offer first, however many brokers passed it on; None: nobody stated any."""
    while isinstance(terms, Remote):
        terms = terms.inner
    return terms


def list_route(platform: str, terms: Terms) -> tuple[str, ...]:
    """The platforms on the way to where it would run: the broker, that broker's broker, and at last the machine."""
    route = [platform]
    step: Terms | None = terms
    while isinstance(step, Remote) and step.platform:
        route.append(step.platform)
        step = step.inner
    return tuple(route)


@dataclass(frozen=True, slots=True)
class Quote:
    """What something costs, or how well it performs: the IVOA cost and metric items."""

    type: str
    min: float
    max: float
    description: str = ""


Draws = Literal["", "across", "alone"]


@dataclass(frozen=True, slots=True)
class Offer:
    """Run it there, then, like this."""

    platform: str
    way: str  # the kind's way of running it: "sh", "podman", "papermill"
    start: datetime  # the earliest start
    latest_start: datetime  # later where the offer says "now" and is held for minutes, or a shared queue has a window
    duration: timedelta
    nodes: tuple[str, ...]  # exact nodes; empty where the platform chooses
    shape: Shape
    prepare: timedelta = timedelta(0)  # before the start: bringing data and images
    release: timedelta = timedelta(seconds=10)  # after the end: results and cleaning
    storage: Mapping[str, int] = field(default_factory=dict)  # storage resource name → bytes booked
    pools: Mapping[str, str] = field(default_factory=dict)  # storage resource name → the pool that it is booked in
    costs: tuple[Quote, ...] = ()  # of all of it
    metrics: tuple[Quote, ...] = ()
    compute_costs: tuple[Quote, ...] = ()  # of which this is for the compute resource
    storage_costs: Mapping[str, tuple[Quote, ...]] = field(default_factory=dict)  # and this for each storage
    terms: Terms = field(default_factory=Booked)
    interactive: bool = False  # it will be AVAILABLE to connect to, instead of RUNNING
    why: str = ""  # why this offer is in the set: "earliest", "largest", "cheapest", "09:00 on Monday"
    queue: str = ""  # of a shared platform: the queue it would wait in
    scheduler: SchedulerOptions = NOTHING_ASKED  # of a shared platform: as the request named them
    count: int = 1  # how many nodes, where the platform chooses which
    begin: datetime | None = None  # of a shared queue: not before this
    parts: int = 1  # of how many jobs with this shape and duration it is made
    after: tuple[str, ...] = ()  # sessions that must have completed first
    is_here: bool = False  # on the machine of the service itself
    needs_login: bool = False  # a person had to sign in there first, when it was offered
    pledge: Mapping[str, int] = field(default_factory=dict)  # that it draws on, and their cores; none: there are none
    staging: StagingEstimate = NOTHING_TO_STAGE  # how long bringing its data takes
    run_time: RunEstimate | None = None  # how long it will really run; None: too little is known
    gpu_sorts: tuple[GpuSort, ...] = ()  # one of which it is given; none: its platform tells nothing of them
    draws: Draws = ""  # on several pledges, or on one alone, where there is an offer of the other sort too

    @property
    def end(self) -> datetime:
        """When it ends, if it begins at its earliest."""
        return self.start + self.duration

    @property
    def reservation(self) -> str:
        """The key of the reservation by which its platform holds it; empty: there is none."""
        return self.terms.reservation if isinstance(self.terms, Booked) else ""

    @property
    def is_in_calendar(self) -> bool:
        """Whether our own calendar holds it."""
        return isinstance(self.terms, Booked) and not self.terms.reservation

    @property
    def is_kept_free(self) -> bool:
        """Whether its time is kept for it: by our own calendar, or by that of another broker, which says so."""
        terms = self.terms
        is_there = isinstance(terms, Remote) and terms.held and isinstance(find_first_terms(terms), Booked)
        return self.is_in_calendar or is_there

    @property
    def pool_sizes(self) -> dict[str, int]:
        """What its storage comes to in each pool."""
        return sum_pools(self.storage, self.pools)

    @property
    def amounts(self) -> Amounts:
        """All that it gives."""
        return Amounts(self.shape, len(self.nodes) or self.count, self.duration, self.parts)


def sum_pools(storage: Mapping[str, int], pools: Mapping[str, str]) -> dict[str, int]:
    """What pieces of storage come to in each pool."""
    totals: dict[str, int] = {}
    for name, size in storage.items():
        if size:
            totals[pools[name]] = totals.get(pools[name], 0) + size
    return totals


def find_latest_start(offer: Offer) -> datetime:
    """By when it is likely to have started: nine of ten predicted starts are no later."""
    terms = find_first_terms(offer.terms)
    return max(offer.start, terms.p90) if isinstance(terms, Predicted) else offer.start


def estimate_runs(offers: Iterable[Offer], history: RunHistory) -> list[Offer]:
    """Offers with how long they will run, as far as the history says; one that people connect to ends when they say."""
    known: dict[tuple[str, int, timedelta], RunEstimate | None] = {}
    made = []
    for offer in offers:
        key = (offer.queue, offer.shape.cores * offer.amounts.nodes, offer.duration)
        if key not in known:
            known[key] = history.estimate(offer.platform, *key)
        estimate = None if offer.interactive else known[key]
        made.append(replace(offer, run_time=estimate) if estimate else offer)
    return made


def rate_offer(offer: Offer) -> Rated:
    """What of an offer is compared with others."""
    terms = find_first_terms(offer.terms)
    if terms is None and offer.latest_start > offer.start:  # a broker that says no more than between when it starts
        p90: datetime | None = offer.latest_start
    else:
        p90 = terms.p90 if isinstance(terms, Predicted) else None
    return Rated(
        platform=offer.platform,
        start=offer.start,
        terms=offer.terms.kind,
        p90=p90,
        price=sum(cost.max for cost in offer.costs),
        cores=offer.shape.cores,
        memory=offer.shape.memory,
        is_here=offer.is_here,
        needs_login=offer.needs_login,
        detail=f"{offer.queue} {offer.nodes} {offer.latest_start.isoformat()} {offer.why}",
    )


@dataclass(frozen=True, slots=True)
class Reason:
    """Why not: the field, what was wanted, the limit, and the nearest thing that would be a YES."""

    kind: str  # a message kind: urn:resource-limit, urn:not-supported, …
    field: str  # "compute.cores.min"
    message: str  # the whole sentence
    wanted: str = ""
    limit: str = ""
    nearest: str = ""
    platform: str = ""
    _: KW_ONLY
    as_of: datetime | None = None  # when that was seen which it rests on, if that is a while ago


EXECUTABLE_REQUIRED = Reason(
    "urn:executable-required", "executable", "Description of the executable is required: what is to run?"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What one platform, or all of them together, say to a request."""

    offers: tuple[Offer, ...] = ()
    reasons: tuple[Reason, ...] = ()
