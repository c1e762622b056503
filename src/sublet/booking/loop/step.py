"""The result of one step of a session, and ends that come before anything ran."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sublet.booking.loop.context import LoopContext
from sublet.booking.model.events import EventKind
from sublet.booking.model.job import JobState
from sublet.booking.model.marks import set_condition
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Connector, End, EndKind, Session
from sublet.platforms.port import Platform

GRACE = timedelta(seconds=30)  # after its time limit a job has this long to end by itself
FAR_GRACE = timedelta(hours=3)  # the same where the system ends jobs by its own clock, which may differ from ours
RETRY = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Step:
    """The result of a step: the next phase, or None to stay, and when to look again."""

    to: Phase | None = None
    due: datetime | None = None
    event: EventKind | None = None
    detail: str = ""
    release: bool = False  # release the booking
    changes: dict[str, Any] = field(default_factory=dict)
    is_ready: bool = False  # prepared before its start, so that it may start sooner


def fail_early(context: LoopContext, kind: EndKind, why: str) -> Step:
    """Return the step for a session that failed before it ran."""
    now = context.now()
    changes = {"end": End(kind, detail=why), "ended": now, **set_condition()}
    return Step(Phase.FAILED, now + context.settings.keep, EventKind.FAILED, f"{kind.value}: {why}", True, changes)


def deadline_of(session: Session) -> datetime | None:
    """Return until when a shared queue must have started the session: the end of the requested window, if any.

    A session with a reservation starts within it, or not at all.
    """
    offer = session.offer
    if offer.reservation:
        return offer.end
    return offer.latest_start if offer.terms.kind == "predicted" and offer.latest_start > offer.start else None


def has_outlived(session: Session, platform: Platform, now: datetime) -> bool:
    """Whether a job is still there although its time is over, so that it must be stopped.

    A cluster ends its jobs at their time limit itself. The clock of this machine may be wrong, so a job elsewhere is
    stopped from here only when it is far beyond its time.
    """
    grace = GRACE if platform.is_here or platform.plays else FAR_GRACE
    return session.until is not None and now >= session.until + grace


def list_connectors(session: Session, state: JobState) -> tuple[Connector, ...]:
    """Return the session's connectors as they are stored: without its secret, and without our own address."""
    if state.connector is None:
        return ()
    return (Connector(state.connector.kind, "AVAILABLE", "HTTP", f"/connect/{session.id}/"),)
