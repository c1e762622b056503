"""A session: an offer that was made, what has become of it, and how it ended; its phases are in `phases.py`."""

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
    """Why a session ended, each its own reason."""

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
    CULLED = "culled"  # its server was stopped by who runs it, as for being idle
    WINDOW_PASSED = "window-passed"  # it could not start in time
    DISK_FULL = "disk-full"
    DEPENDENCY_FAILED = "dependency-failed"  # a session that it waited for did not complete
    NOT_APPROVED = "not-approved"  # the code that it was to run is not approved any more, or is not what was approved
    GAVE_WAY = "gave-way"  # an offer: a later request of the same person needed its room; `detail` is that offer set
    UNKNOWN = "unknown"  # there is no record of how it ended


HELD = "held in the queue"
STOPPED = "stopped on its node; its time runs on"
RELEASED = "released in the queue"
CONTINUED = "continued on its node"


def describe_pause(how: str) -> str:
    """The condition of a session that was paused in this way."""
    return f"paused: {how}"


EnergySource = Literal["", "measured", "settings"]  # by the platform itself, or by what the operator says of its cores


@dataclass(frozen=True, slots=True)
class Usage:
    """What it used."""

    wall: float = 0.0  # seconds
    cpu: float = 0.0  # seconds, user and system
    peak_memory: int = 0  # bytes
    energy: float = 0.0  # kWh; what is not known is 0
    carbon: float = 0.0  # grams of CO2 for that energy
    energy_source: EnergySource = ""


@dataclass(frozen=True, slots=True)
class End:
    """How it ended."""

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


ELSEWHERE = "see:"  # before the address of a server that asks by itself who comes: people are sent there


@dataclass(frozen=True, slots=True)
class Connector:
    """A way in to a running session."""

    kind: str  # uri:jupyter-lab, uri:shell, uri:http
    status: str  # PREPARING, AVAILABLE, FINISHED
    protocol: str
    location: str

    @property
    def leads_elsewhere(self) -> bool:
        """Whether visitors are sent to another server, and don't pass through the service."""
        return self.location.startswith(ELSEWHERE)

    def address(self, base: str) -> str:
        """Where it is reached; one below the service's own address in full."""
        return base + self.location if self.location.startswith("/") else self.location


@dataclass(frozen=True, slots=True)
class Session:
    """An offer, and what has become of it."""

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
    job: str = ""  # under which its platform is asked for it, once submitted
    cancel_by: str = ""  # who asked to cancel it, while that is being done
    end: End | None = None
    connectors: tuple[Connector, ...] = ()
    app: str = ""  # the version of an app that it runs, if it runs one
    cancel_reason: str = ""  # why, in the words of whoever asked to cancel it
    lost: datetime | None = None  # since when its platform has had no record of it
    own_id: str = ""  # what the platform itself calls its job, such as Slurm's number
    staged: timedelta | None = None  # how long it took until all its data was there
    marks: Marks = NONE  # what is so of it for now; what is done with it is decided by these

    @property
    def paused(self) -> bool:
        """Whether someone paused it, as far as its platform has told."""
        return Mark.PAUSED in self.marks


def find_likely_end(session: Session) -> datetime | None:
    """By when it is likely to be over, as earlier runs were; None: too little is known of them."""
    if session.offer.run_time is None:
        return None
    return session.offer.run_time.find_end(session.started or session.start or find_latest_start(session.offer))


@dataclass(frozen=True, slots=True)
class Dependency:
    """A session that another one waits for, and what has become of it."""

    id: str
    phase: Phase | None = None  # once it is over
    words: str = ""  # how it ended, where that wasn't well

    @property
    def open(self) -> bool:
        """Whether it may still complete."""
        return self.phase is None

    @property
    def failed(self) -> bool:
        """Whether it will never complete."""
        return self.phase not in (None, Phase.COMPLETED)


@dataclass(frozen=True, slots=True)
class OfferSet:
    """The answer to one request: YES with offers, each of them a session, or NO with reasons."""

    id: str  # a UUID; also the key of what is held for it
    person: str
    created: datetime
    expires: datetime
    result: Literal["YES", "NO"]
    request: Request
    document: str  # as it was received
    content_type: str
    reasons: tuple[Reason, ...] = ()
    key: str | None = None  # the asker's own: the same key is the same set
    offers: tuple[Session, ...] = ()  # as they are now; earliest first
    firm: bool = False  # they don't give way to a later request of the same person

    def stands(self, now: datetime) -> bool:
        """Whether an offer was taken, or one can still be."""
        return any(
            offer.start is not None or (offer.phase is Phase.OFFERED and offer.expires > now) for offer in self.offers
        )
