"""Offers: these resources, at this time and price, on stated terms; and the reasons for a NO."""

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

HINT = "urn:hint"  # the kind of a reason that is only advice: `nearest` would be enough
IGNORED = "urn:ignored-field"  # the kind of a reason that is only a remark: a field was ignored


@dataclass(frozen=True, slots=True)
class Node:
    """One machine and its capacity."""

    name: str
    cores: int
    memory: int  # in bytes
    gpus: int = 0
    disk: int = 0  # local, in bytes; 0: none that can be requested


@dataclass(frozen=True, slots=True)
class Take:
    """A part of one node, or of a pool of storage or pledged cores, for a half-open time."""

    where: str  # a node's name, or a pool's name
    start: datetime
    end: datetime
    cores: int = 0
    memory: int = 0
    gpus: int = 0
    size: int = 0  # bytes, or cores, of a pool; a take is of a pool exactly when `pool` is true
    pool: bool = False
    disk: int = 0  # bytes of a node's local disk


def take_of(node: str, start: datetime, end: datetime, sizes: HasSizes) -> Take:
    """Return a take of these sizes on a node."""
    return Take(node, start, end, sizes.cores, sizes.memory, sizes.gpus, disk=sizes.disk)


@dataclass(frozen=True, slots=True)
class Booked:
    """Capacity that is held for the asker until the offer expires: in our calendar, or by a reservation elsewhere."""

    reservation: str = ""  # the key of the platform's own reservation, which the session takes as its id
    kind: Literal["booked"] = "booked"


@dataclass(frozen=True, slots=True)
class Predicted:
    """A prediction for a shared queue: nothing is held, and the start is an interval."""

    p10: datetime
    p50: datetime
    p90: datetime
    samples: int = 0  # fewer than 20 are no track record
    as_of: datetime | None = None  # when the survey behind it was made
    planned: datetime | None = None  # the scheduler's own plan, before the track record was applied
    kind: Literal["predicted"] = "predicted"


@dataclass(frozen=True, slots=True)
class Remote:
    """Another broker's offer: its address there, and that broker's terms."""

    url: str  # of the session at that broker
    expires: datetime  # until when it can be accepted there
    platform: str = ""  # where it would run, as that broker calls it
    inner: Terms | None = None  # the terms that broker stated; None: it stated none
    held: bool = False  # whether that broker says that it holds the resources
    maker: str = ""  # proof of which broker made it first, however many passed it on; empty: none
    components: Mapping[str, Any] = field(default_factory=dict)  # parts of its document that this service can't write
    kind: Literal["remote"] = "remote"


Terms = Booked | Predicted | Remote


def find_first_terms(terms: Terms | None) -> Booked | Predicted | None:
    """Return the terms of the broker that made the offer first, however many passed it on; None: it stated none."""
    while isinstance(terms, Remote):
        terms = terms.inner
    return terms


def list_route(platform: str, terms: Terms) -> tuple[str, ...]:
    """Return the platforms on the way to where an offer would run: each broker in turn, and at last the machine."""
    route = [platform]
    step: Terms | None = terms
    while isinstance(step, Remote) and step.platform:
        route.append(step.platform)
        step = step.inner
    return tuple(route)


@dataclass(frozen=True, slots=True)
class Quote:
    """What something costs or how well it performs, as IVOA's cost and metric items."""

    type: str
    min: float
    max: float
    description: str = ""


Draws = Literal["", "across", "alone"]


@dataclass(frozen=True, slots=True)
class Offer:
    """An offer to run a request on a platform, at a time, in a certain way."""

    platform: str
    way: str  # the kind's way of running it: "sh", "podman", "papermill"
    start: datetime  # the earliest start
    latest_start: datetime  # later if the offer slides while it is held, or if a shared queue has a window
    duration: timedelta
    nodes: tuple[str, ...]  # exact nodes; empty where the platform chooses
    shape: Shape
    prepare: timedelta = timedelta(0)  # before the start: staging data and images
    release: timedelta = timedelta(seconds=10)  # after the end: collecting results and cleaning up
    storage: Mapping[str, int] = field(default_factory=dict)  # storage resource name → bytes booked
    pools: Mapping[str, str] = field(default_factory=dict)  # storage resource name → the pool that it is booked in
    costs: tuple[Quote, ...] = ()  # in total
    metrics: tuple[Quote, ...] = ()
    compute_costs: tuple[Quote, ...] = ()  # the part for the compute resource
    storage_costs: Mapping[str, tuple[Quote, ...]] = field(default_factory=dict)  # for each storage
    terms: Terms = field(default_factory=Booked)
    interactive: bool = False  # people can connect to it: AVAILABLE instead of RUNNING
    why: str = ""  # why this offer is in the set: "earliest", "largest", "cheapest", "09:00 on Monday"
    queue: str = ""  # on a shared platform: the queue it would wait in
    scheduler: SchedulerOptions = NOTHING_ASKED  # on a shared platform: as requested
    count: int = 1  # how many nodes, where the platform chooses them
    begin: datetime | None = None  # in a shared queue: no start before this
    parts: int = 1  # the number of jobs, each with this shape and duration
    after: tuple[str, ...] = ()  # sessions that must have completed first
    is_here: bool = False  # on the service's own machine
    needs_login: bool = False  # when it was offered, a person had to sign in there first
    pledge: Mapping[str, int] = field(default_factory=dict)  # pledges it draws on → their cores; empty: none exist
    staging: StagingEstimate = NOTHING_TO_STAGE  # how long staging its data takes
    run_time: RunEstimate | None = None  # how long it will probably run; None: too little is known
    gpu_sorts: tuple[GpuSort, ...] = ()  # it gets one of these; empty: its platform doesn't tell
    draws: Draws = ""  # on several pledges or on one alone, if the set has both sorts of offers

    @property
    def end(self) -> datetime:
        """When the session would end if it starts at its earliest."""
        return self.start + self.duration

    @property
    def reservation(self) -> str:
        """The key of the platform's reservation for the offer, or empty."""
        return self.terms.reservation if isinstance(self.terms, Booked) else ""

    @property
    def is_in_calendar(self) -> bool:
        """Whether our own calendar holds the offer."""
        return isinstance(self.terms, Booked) and not self.terms.reservation

    @property
    def is_held(self) -> bool:
        """Whether resources are held for the offer: in our calendar, by a reservation, or as another broker says."""
        return isinstance(self.terms, Booked) or (isinstance(self.terms, Remote) and self.terms.held)

    @property
    def is_kept_free(self) -> bool:
        """Whether resources are kept free for the offer: by our calendar, or by another broker that says so."""
        terms = self.terms
        is_there = isinstance(terms, Remote) and terms.held and isinstance(find_first_terms(terms), Booked)
        return self.is_in_calendar or is_there

    @property
    def pool_sizes(self) -> dict[str, int]:
        """The bytes of the offer's storage in each pool."""
        return sum_pools(self.storage, self.pools)

    @property
    def amounts(self) -> Amounts:
        """The amounts that are offered."""
        return Amounts(self.shape, len(self.nodes) or self.count, self.duration, self.parts)


def sum_pools(storage: Mapping[str, int], pools: Mapping[str, str]) -> dict[str, int]:
    """Return the bytes in each pool for these pieces of storage."""
    totals: dict[str, int] = {}
    for name, size in storage.items():
        if size:
            totals[pools[name]] = totals.get(pools[name], 0) + size
    return totals


def find_latest_start(offer: Offer) -> datetime:
    """Return by when an offer will probably have started: the p90 of a predicted start."""
    terms = find_first_terms(offer.terms)
    return max(offer.start, terms.p90) if isinstance(terms, Predicted) else offer.start


def estimate_runs(offers: Iterable[Offer], history: RunHistory) -> list[Offer]:
    """Add estimated run times to offers, except to interactive ones, which end when people stop them."""
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
    """Return the properties by which an offer is compared with others."""
    terms = find_first_terms(offer.terms)
    if terms is None and offer.latest_start > offer.start:  # a broker that states only an interval of starts
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
    """A reason for a NO: the field, what was wanted, the limit, and the nearest value that would be a YES."""

    kind: str  # a message kind: urn:resource-limit, urn:not-supported, …
    field: str  # "compute.cores.min"
    message: str  # the whole sentence
    wanted: str = ""
    limit: str = ""
    nearest: str = ""
    platform: str = ""
    _: KW_ONLY
    as_of: datetime | None = None  # the time of the survey that it is based on, if that isn't recent


EXECUTABLE_REQUIRED = Reason(
    "urn:executable-required", "executable", "Description of the executable is required: what is to run?"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """The offers and reasons of one platform, or of several together, for a request."""

    offers: tuple[Offer, ...] = ()
    reasons: tuple[Reason, ...] = ()
