"""Events, and their kinds by their names on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sublet.booking.model.phases import Phase


class EventKind(StrEnum):
    """A kind of event: a fact in the past tense."""

    OFFERED = "offerset.made"
    ACCEPTED = "session.accepted"
    REJECTED = "session.rejected"
    EXPIRED = "session.expired"
    GAVE_WAY = "session.gave-way"  # to a later request of the same person
    WAITING = "session.waiting"
    PREPARING = "session.preparing"
    STAGED = "session.staged"  # some of its data is where it will run
    SUBMITTED = "session.submitted"
    AVAILABLE = "session.available"
    RUNNING = "session.running"
    ENDED = "session.ended"  # its job has ended; its phase follows
    COMPLETED = "session.completed"
    FAILED = "session.failed"
    CANCELLED = "session.cancelled"
    FETCHED = "session.fetched"
    SENT = "session.sent"  # its results, to the requested address
    UNSENT = "session.unsent"  # its results could not be sent
    CLEANED = "session.cleaned"
    PAUSED = "session.paused"
    RESUMED = "session.resumed"
    EXTENDED = "session.extended"
    MOVED = "session.moved"  # to another time, after a drain
    MOVED_UP = "session.moved-up"  # to an earlier time
    HANDED_OVER = "session.handed-over"  # to another person
    WARNED = "session.warned"  # its time is over soon
    LOST = "session.lost"  # its platform has no record of it
    CANCEL_ASKED = "session.cancel-asked"
    APP_REVOKED = "session.app-revoked"
    DRAINING = "session.draining"
    CLOCK_STEPPED = "session.clock-stepped"
    LEASE_ASKED = "lease.asked"
    LEASE_ENDED = "lease.ended"
    LEASE_SHRUNK = "lease.shrunk"
    LEASE_DRAINING = "lease.draining"
    LEASE_UNDRAINED = "lease.undrained"
    PILOT_CLAIMED = "pilot.claimed"
    PILOT_ENDED = "pilot.ended"
    ANNEX_SHARED = "annex.shared"
    ANNEX_UNSHARED = "annex.unshared"
    HOOK_TESTED = "hook.tested"  # sent to one webhook only, and not recorded
    UNKNOWN = "session.unknown"  # recorded by a newer version

    @property
    def fact(self) -> str:
        """What happened, without the subject: `app-revoked`."""
        return self.value.partition(".")[2]


KINDS = {kind.value: kind for kind in EventKind}


def kind_of_move(phase: Phase) -> EventKind:
    """Return the kind of event for a session's move to a phase."""
    return EventKind(f"session.{phase.value.lower()}")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a session, a lease or an annex."""

    id: int
    time: datetime
    session: str
    person: str
    kind: EventKind
    detail: str = ""  # in words; nothing is decided by it
    phase: str = ""
