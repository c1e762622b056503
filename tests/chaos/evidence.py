"""What is known after a run: of clients, witnesses, sessions, faults, and what is left on the machine."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.chaos.plan import Work


@dataclass(frozen=True)
class Witness:
    """One line that a program wrote itself, by O_APPEND."""

    work: str
    event: str  # begin or end
    session: str = ""


@dataclass(frozen=True)
class Told:
    """What a client was told of its work."""

    work: str
    ids: frozenset[str] = frozenset()  # of the sessions that it was told were accepted
    refused: str = ""  # why it was not accepted, if that was the answer
    cancelled: bool = False  # whether the client asked to cancel it
    end: tuple[str, int | None] | None = None  # kind and code, as the client was told
    exit: int | None = None  # of `sublet run`


@dataclass(frozen=True)
class Record:
    """A session as the database has it."""

    id: str
    name: str
    platform: str
    phase: str
    created: float  # seconds since the epoch, as all times here
    ended: float | None = None
    kind: str = ""  # of its end
    code: int | None = None
    signal: int | None = None
    by: str = ""
    detail: str = ""
    is_claimed: bool = False


@dataclass(frozen=True)
class Injected:
    """A fault as it was injected."""

    kind: str
    detail: str
    began: float
    ended: float


@dataclass(frozen=True)
class Health:
    """One look at /health."""

    asked: float
    answered: float
    status: str  # ok, failing, or away
    service: int  # which of several
    problem: str = ""


@dataclass(frozen=True)
class FailedTurn:
    """A turn of a service's loop that failed, by its log."""

    time: float
    service: int


@dataclass(frozen=True)
class Ended:
    """How a session ended, by the record in its directory."""

    kind: str
    code: int | None


@dataclass(frozen=True)
class Evidence:
    """All of it."""

    work: tuple[Work, ...]
    told: tuple[Told, ...] = ()
    witnesses: tuple[Witness, ...] = ()
    records: tuple[Record, ...] = ()
    faults: tuple[Injected, ...] = ()
    health: tuple[Health, ...] = ()
    failed_turns: tuple[FailedTurn, ...] = ()
    outages: tuple[tuple[float, float], ...] = ()  # in which the database could surely not be used
    starts: tuple[tuple[int, float], ...] = ()  # which service was started, and when
    unfinished: tuple[str, ...] = ()  # N seconds after all was quiet
    booked: frozenset[str] = frozenset()  # keys of bookings that hold something
    processes: tuple[str, ...] = ()  # of sessions, or shims, that still run
    leftovers: tuple[str, ...] = ()  # marks, control groups, links and the like, that belong to nobody
    directories: frozenset[str] = frozenset()  # names of session directories
    ends: dict[str, Ended] = field(default_factory=dict)  # session → its end, by its own directory
    listed: dict[str, str] = field(default_factory=dict)  # session → phase, as `sublet ps` lists it
    cancels: frozenset[str] = frozenset()  # sessions that Sublet named to the site's scancel
    cancelled_there: frozenset[str] = frozenset()  # sessions whose jobs the site says were cancelled
    log_bytes: int = 0
    seconds: float = 0.0  # that the services ran
    notes: tuple[str, ...] = ()  # what was seen on the way and is wrong by itself
