"""The state of an annex: each lease and node, from what was recorded and from what its slots report now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from sublet.annexes.model.annex import Annex, Lease, Pilot
from sublet.booking.model.offer import Predicted
from sublet.booking.model.phases import ENDING, STARTED, Phase
from sublet.booking.model.session import Session
from sublet.kernel.texts import describe_duration
from sublet.systems.model.allocation import Cost

PENDING = frozenset({Phase.OFFERED, Phase.ACCEPTED, Phase.WAITING, Phase.PREPARING})
LEAST_SILENCE = timedelta(seconds=8)
MISSED = 3  # updates that a node must miss to count as dead
SILENT = timedelta(seconds=25)  # how long a pilot, which calls every 10 s, may be silent
UNSEEN = timedelta(seconds=60)  # how long it may take until a pilot's slots are seen

LeaseWord = Literal["asked", "queued", "starting", "up", "dead", "ending", "ended"]
NodeWord = Literal["starting", "up", "dead", "ended"]


@dataclass(frozen=True, slots=True)
class Slots:
    """The resources of one node of a lease, as last reported to the access point."""

    lease: str
    node: int
    machine: str
    cores: int
    busy: int  # cores
    running: int  # jobs
    memory: int  # in bytes
    gpus: int
    heard: datetime
    interval: timedelta  # between two updates
    slots: int = 0  # of equal size; 0: one, which is divided as jobs need


@dataclass(frozen=True, slots=True)
class NodeState:
    """The state of one node of a lease."""

    number: int
    node: str
    state: NodeWord
    cores: int = 0
    busy: int = 0
    running: int = 0
    slots: int = 0
    memory: int = 0
    gpus: int = 0
    heard: datetime | None = None
    why: str = ""
    draining: bool = False  # whether it takes no new jobs, and ends after the running ones


@dataclass(frozen=True, slots=True)
class LeaseState:
    """The state of one lease."""

    lease: Lease
    state: LeaseWord
    why: str = ""  # why it is in this state
    session: Session | None = None
    nodes: tuple[NodeState, ...] = ()
    cost: Cost | None = None  # so far; None: it is no longer known

    @property
    def expected(self) -> Predicted | None:
        """When the lease is expected to start, while it is queued."""
        terms = self.session.offer.terms if self.session else None
        return terms if self.state == "queued" and isinstance(terms, Predicted) else None


@dataclass(frozen=True, slots=True)
class JobCounts:
    """The numbers of jobs that name an annex."""

    idle: int = 0
    running: int = 0
    held: int = 0


@dataclass(frozen=True, slots=True)
class AnnexState:
    """The state of an annex, its leases, and the jobs that name it."""

    annex: Annex
    leases: tuple[LeaseState, ...]
    jobs: JobCounts | None = None  # None: the access point didn't answer
    trouble: str = ""  # why the state of nodes and jobs isn't known


def nodes_of(pilots: Sequence[Pilot], slots: Iterable[Slots] | None, now: datetime) -> tuple[NodeState, ...]:
    """Return the state of each node with a pilot; from the pilots' own reports if the slots aren't known."""
    if slots is None:
        return tuple(_by_its_word(pilot, now) for pilot in pilots)
    by_number = {slot.node: slot for slot in slots}
    return tuple(_node(pilot, by_number.get(pilot.number), now) for pilot in pilots)


def _by_its_word(pilot: Pilot, now: datetime) -> NodeState:
    if pilot.ended:
        return NodeState(pilot.number, pilot.node, "ended", heard=pilot.seen, why=pilot.why)
    silence = now - (pilot.seen or pilot.claimed)
    if silence < SILENT:
        return NodeState(pilot.number, pilot.node, "up", heard=pilot.seen, draining=pilot.is_draining)
    return NodeState(pilot.number, pilot.node, "dead", heard=pilot.seen, why=_silent(silence))


def _silent(silence: timedelta) -> str:
    return f"it has not reported for {describe_duration(silence, units=2)}"


def _node(pilot: Pilot, slots: Slots | None, now: datetime) -> NodeState:
    if pilot.ended:
        return NodeState(pilot.number, pilot.node, "ended", heard=pilot.seen, why=pilot.why)
    if slots is None:
        new = now - pilot.claimed < UNSEEN
        why = "its slots have not been seen yet" if new else "its slots are not seen any more"
        return NodeState(pilot.number, pilot.node, "starting" if new else "dead", heard=pilot.seen, why=why)
    silence = now - slots.heard
    dead = silence > max(LEAST_SILENCE, MISSED * slots.interval)
    return NodeState(
        number=pilot.number,
        node=pilot.node or slots.machine,
        state="dead" if dead else "up",
        cores=slots.cores,
        busy=0 if dead else slots.busy,
        running=0 if dead else slots.running,
        slots=slots.slots,
        memory=slots.memory,
        gpus=slots.gpus,
        heard=slots.heard,
        why=_silent(silence) if dead else "",
        draining=pilot.is_draining,
    )


def state_of(lease: Lease, session: Session | None, nodes: Sequence[NodeState]) -> tuple[LeaseWord, str]:
    """Return the state of a lease, and the reason."""
    if lease.ended:
        return "ended", lease.why
    if session is None:
        return "asked", "it is being sent"
    if session.cancel_by or session.phase in ENDING:
        return "ending", session.condition
    if session.phase in PENDING and not nodes:  # nodes report before their system is polled again
        return "queued", session.condition
    words = {node.state for node in nodes}
    if "up" in words:
        return "up", session.condition if session.phase in STARTED else ""
    if words and words <= {"dead", "ended"}:
        return "dead", "none of its nodes reports"
    return "starting", session.condition or "its nodes have not reported yet"
