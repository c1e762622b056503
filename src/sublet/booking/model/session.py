"""A session: an offer, what became of it, and how it ended; its phases are in `phases.py`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from sublet.booking.model.marks import NONE, Mark, Marks
from sublet.booking.model.offer import Offer, Reason, find_latest_start
from sublet.booking.model.phases import Phase
from sublet.booking.model.request import Request


class EndKind(StrEnum):
    """Why a session ended."""

    EXITED = "exited"  # with a code
    SIGNALLED = "signalled"  # by a signal that Sublet didn't send
    TIMEOUT = "timeout"  # the booked time was over
    OUT_OF_MEMORY = "out-of-memory"
    CANCELLED = "cancelled"  # `by` says by whom
    STAGING_FAILED = "staging-failed"
    NOT_STARTED = "not-started"  # the executable couldn't be started
    NODE_LOST = "node-lost"  # the machine went away, or was restarted
    PREEMPTED = "preempted"
    KERNEL_DIED = "kernel-died"  # the kernel that a notebook ran in
    CULLED = "culled"  # its server was stopped by its operator, for instance for being idle
    WINDOW_PASSED = "window-passed"  # it could not start in time
    DISK_FULL = "disk-full"
    DEPENDENCY_FAILED = "dependency-failed"  # a session that it depends on did not complete
    NOT_APPROVED = "not-approved"  # its code is no longer approved, or isn't what was approved
    GAVE_WAY = "gave-way"  # an offer: a later request of the same person needed its room; `detail` is that offer set
    UNKNOWN = "unknown"  # there is no record of how it ended


HELD = "held in the queue"
STOPPED = "stopped on its node; its time runs on"
RELEASED = "released in the queue"
CONTINUED = "continued on its node"


def describe_pause(how: str) -> str:
    """Return the condition text of a session that was paused in this way."""
    return f"paused: {how}"


EnergySource = Literal["", "measured", "settings"]  # by the platform, or computed from the operator's settings


@dataclass(frozen=True, slots=True)
class Usage:
    """What a session used."""

    wall: float = 0.0  # seconds
    cpu: float = 0.0  # seconds, user and system
    peak_memory: int = 0  # bytes
    energy: float = 0.0  # kWh; 0: not known
    carbon: float = 0.0  # grams of CO2 for that energy
    energy_source: EnergySource = ""


@dataclass(frozen=True, slots=True)
class End:
    """How a session ended."""

    kind: EndKind
    code: int | None = None  # the exit code
    signal: int | None = None
    by: str = ""  # who cancelled it
    detail: str = ""  # in words
    usage: Usage | None = None

    @property
    def phase(self) -> Phase:
        """The phase that this end leads to."""
        if self.kind is EndKind.CANCELLED:
            return Phase.CANCELLED
        if self.kind is EndKind.GAVE_WAY:
            return Phase.REJECTED
        return Phase.COMPLETED if self.kind is EndKind.EXITED and self.code == 0 else Phase.FAILED


ELSEWHERE = "see:"  # prefix of the address of a server with its own sign-in: visitors are redirected there


@dataclass(frozen=True, slots=True)
class Connector:
    """How to connect to a running session."""

    kind: str  # uri:jupyter-lab, uri:shell, uri:http
    status: str  # PREPARING, AVAILABLE, FINISHED
    protocol: str
    location: str

    @property
    def leads_elsewhere(self) -> bool:
        """Whether visitors are redirected to another server instead of passing through the service."""
        return self.location.startswith(ELSEWHERE)

    def address(self, base: str) -> str:
        """Return the full address; `base` is the service's own, for a location that begins with /."""
        return base + self.location if self.location.startswith("/") else self.location


@dataclass(frozen=True, slots=True)
class Session:
    """An offer, and what became of it."""

    id: str  # a UUID; also the key under which it is submitted
    offerset: str
    person: str
    name: str
    kind: str  # the executable's short kind
    phase: Phase
    offer: Offer
    created: datetime
    modified: datetime
    expires: datetime  # of the offer
    condition: str = ""  # in words, beside the phase; nothing is decided by it
    start: datetime | None = None  # when it is to start: fixed at accept
    until: datetime | None = None  # when its booked time ends: fixed at accept, moved by extend
    started: datetime | None = None  # when it did start
    ended: datetime | None = None
    job: str = ""  # the platform's key for its job, once submitted
    cancel_by: str = ""  # who asked to cancel it, until that is done
    end: End | None = None
    connectors: tuple[Connector, ...] = ()
    app: str = ""  # the version of an app that it runs, if it runs one
    cancel_reason: str = ""  # why, in the words of whoever asked to cancel it
    lost: datetime | None = None  # since when its platform has had no record of it
    own_id: str = ""  # what the platform itself calls its job, such as Slurm's number
    staged: timedelta | None = None  # how long staging its data took
    marks: Marks = NONE  # its state beside the phase, by which programs decide

    @property
    def paused(self) -> bool:
        """Whether the session is paused, according to its platform's last report."""
        return Mark.PAUSED in self.marks


def find_likely_end(session: Session) -> datetime | None:
    """Return by when a session will probably end, based on earlier runs; None: too little is known."""
    if session.offer.run_time is None:
        return None
    return session.offer.run_time.find_end(session.started or session.start or find_latest_start(session.offer))


@dataclass(frozen=True, slots=True)
class Dependency:
    """A session that another one depends on, and its outcome."""

    id: str
    phase: Phase | None = None  # once it is over
    words: str = ""  # how it ended

    @property
    def open(self) -> bool:
        """Whether the session may still complete."""
        return self.phase is None

    @property
    def failed(self) -> bool:
        """Whether the session ended without completing."""
        return self.phase not in (None, Phase.COMPLETED)


@dataclass(frozen=True, slots=True)
class OfferSet:
    """The answer to one request: YES with offers, each of them a session, or NO with reasons."""

    id: str  # a UUID; also the key of its hold in calendars
    person: str
    created: datetime
    expires: datetime
    result: Literal["YES", "NO"]
    request: Request
    document: str  # as received
    content_type: str
    reasons: tuple[Reason, ...] = ()
    key: str | None = None  # the asker's idempotency key: the same key returns the same set
    offers: tuple[Session, ...] = ()  # as they are now; the best first
    firm: bool = False  # its offers don't give way to a later request of the same person

    def stands(self, now: datetime) -> bool:
        """Whether one of the offers was accepted, or still can be."""
        return any(
            offer.start is not None or (offer.phase is Phase.OFFERED and offer.expires > now) for offer in self.offers
        )
