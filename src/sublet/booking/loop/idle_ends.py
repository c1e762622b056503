"""Ends interactive sessions that nobody has open, after warning their owners."""

from __future__ import annotations

from datetime import datetime

from sublet.booking.loop.context import LoopContext
from sublet.booking.model.idle import IdleEnd
from sublet.booking.model.job import JobState
from sublet.booking.model.marks import NONE, Mark, Marks
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Session

UNUSED: Marks = frozenset({Mark.UNUSED})
STOPPING = "nobody has it open, so it is being stopped"


async def find_idle_end(context: LoopContext, session: Session, state: JobState) -> IdleEnd | None:
    """Return when an idle session ends; None if it isn't available, or its visitors connect to another server."""
    if session.phase is not Phase.AVAILABLE or (state.connector and state.connector.leads_elsewhere):
        return None
    return await context.visits.find_idle_end(session)


def describe_idle(idle_end: IdleEnd | None, now: datetime) -> tuple[str, Marks]:
    """Return the warning for the session's owner, and its mark; empty until shortly before the end."""
    if idle_end is None or now < idle_end.warn_at:
        return "", NONE
    return f"nobody has it open: it ends at {idle_end.at:%Y-%m-%d %H:%M:%S} UTC unless someone opens it", UNUSED


def look_sooner(due: datetime, idle_end: IdleEnd | None, now: datetime) -> datetime:
    """Return when to look at the session again."""
    return min(due, idle_end.find_next_look(now)) if idle_end else due
