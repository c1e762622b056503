"""The phases of a session, and the state machine: which move leads from which phase to which."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """The phase of a session, in IVOA's words."""

    OFFERED = "OFFERED"  # held for the asker, until it expires
    ACCEPTED = "ACCEPTED"  # accepted and recorded; nothing done yet
    REJECTED = "REJECTED"  # declined, or a sibling was accepted, or a later request needed its room
    EXPIRED = "EXPIRED"  # not accepted in time
    WAITING = "WAITING"  # waits for its time
    PREPARING = "PREPARING"  # data and images are being staged
    AVAILABLE = "AVAILABLE"  # interactive: someone can connect
    RUNNING = "RUNNING"  # the executable runs
    RELEASING = "RELEASING"  # it has ended; results are collected, nodes released
    COMPLETED = "COMPLETED"  # it succeeded
    FAILED = "FAILED"  # it did not succeed; `end` says why
    CANCELLED = "CANCELLED"  # someone stopped it; `end` says who


P = Phase
OVER = frozenset({P.REJECTED, P.EXPIRED, P.COMPLETED, P.FAILED, P.CANCELLED})
ACTIVE = frozenset({P.ACCEPTED, P.WAITING, P.PREPARING, P.AVAILABLE, P.RUNNING, P.RELEASING})
STARTED = frozenset({P.AVAILABLE, P.RUNNING})  # its program runs
NOT_YET = frozenset({P.ACCEPTED, P.WAITING, P.PREPARING})  # accepted, and not started yet
GOING_ON = ACTIVE - {P.RELEASING}  # accepted, and not ending yet: it can be extended and stopped
ENDING = OVER | {P.RELEASING}  # it is over, or is about to be

MOVES: dict[Phase, frozenset[Phase]] = {
    P.OFFERED: frozenset({P.ACCEPTED, P.REJECTED, P.EXPIRED, P.CANCELLED}),
    P.ACCEPTED: frozenset({P.WAITING, P.CANCELLED, P.FAILED}),
    P.WAITING: frozenset({P.PREPARING, P.CANCELLED, P.FAILED}),
    P.PREPARING: frozenset({P.AVAILABLE, P.RUNNING, P.RELEASING, P.CANCELLED, P.FAILED}),
    P.AVAILABLE: frozenset({P.RUNNING, P.RELEASING}),
    P.RUNNING: frozenset({P.RELEASING}),
    P.RELEASING: frozenset({P.COMPLETED, P.FAILED, P.CANCELLED}),
    P.REJECTED: frozenset(),
    P.EXPIRED: frozenset(),
    P.COMPLETED: frozenset(),
    P.FAILED: frozenset(),
    P.CANCELLED: frozenset(),
}

# What a client may ask for by `POST /sessions/{uuid}`. Work that runs is cancelled through RELEASING.
CLIENT_MOVES: dict[Phase, tuple[Phase, ...]] = {
    P.OFFERED: (P.ACCEPTED, P.REJECTED, P.CANCELLED),
    P.ACCEPTED: (P.CANCELLED,),
    P.WAITING: (P.CANCELLED,),
    P.PREPARING: (P.CANCELLED,),
    P.AVAILABLE: (P.CANCELLED,),
    P.RUNNING: (P.CANCELLED,),
}
