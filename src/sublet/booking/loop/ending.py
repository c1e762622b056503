"""How a session with a job ends: by itself, or by being cancelled."""

from __future__ import annotations

from dataclasses import replace

from sublet.booking.loop.context import LoopContext
from sublet.booking.loop.step import RETRY, Step, fail_early
from sublet.booking.model.energy import count_energy
from sublet.booking.model.events import EventKind
from sublet.booking.model.job import JobState, State
from sublet.booking.model.marks import Mark, set_condition
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import End, EndKind, Session
from sublet.kernel.faults import point
from sublet.platforms.port import Platform

LOST = frozenset({Mark.LOST})


async def ask_state(platform: Platform, session: Session) -> JobState:
    """Return the state of a session's job, as its platform reports it."""
    states = await platform.ask([session.job])
    return states.get(session.job) or JobState(State.UNKNOWN)


def record_end(context: LoopContext, session: Session, state: JobState) -> Step:
    """Return the step for a job that has ended, as its platform reports."""
    end = with_reason(session, state.end or End(EndKind.UNKNOWN))
    ended = state.ended or context.now()
    started = session.started or state.started
    if state.started and state.ended and context.platforms.of(session).is_here:
        started = state.started  # by the clock as it was set at the end, so that the time between them is right
    tariff = context.price_book.of(session.offer.platform, session.offer.pledge)
    end = count_energy(session, end, started, ended, tariff)
    changes = {"end": end, "ended": ended, "started": min(started, ended) if started else None}
    return Step(Phase.RELEASING, context.now(), EventKind.ENDED, end.kind.value, changes=changes | set_condition())


async def cancel_job(context: LoopContext, session: Session, platform: Platform, state: JobState) -> Step:
    """Cancel a job; if the platform has no record of it, even after being told to cancel it, the job is given up."""
    point("cancel.before")
    await platform.cancel([session.job], session.cancel_by)
    point("cancel.after")
    now = context.now()
    if state.state is not State.UNKNOWN:
        return Step(due=now + RETRY, changes=set_condition("being cancelled"))
    if Mark.LOST not in session.marks:
        words = "being cancelled; unknown: the platform has no record of it"
        return Step(None, now + RETRY, EventKind.LOST, words, changes=set_condition(words, LOST))
    lost = f"{session.offer.platform} had no record of it any more"
    end = with_reason(session, End(EndKind.CANCELLED, by=session.cancel_by, detail=lost))
    return Step(Phase.RELEASING, now, EventKind.ENDED, end.kind.value, changes={"end": end, "ended": now})


def note_found(context: LoopContext, session: Session, state: JobState) -> Step | None:
    """Return a step that clears the condition of a lost job if its platform knows it again; else None."""
    if session.lost is None or state.state is State.UNKNOWN:
        return None
    return Step(due=context.now(), changes={"lost": None, **set_condition()})


def with_reason(session: Session, end: End) -> End:
    """Add the reason for a cancellation to an end, if one was given."""
    if end.kind is not EndKind.CANCELLED or not session.cancel_reason:
        return end
    return replace(end, detail="; ".join(part for part in (session.cancel_reason, end.detail) if part))


async def end_waiting(context: LoopContext, session: Session) -> Step | None:
    """Return the end of a waiting session that was cancelled, or whose code may not be run; else None."""
    if revoked := await context.code.describe_code(session):
        return fail_early(context, EndKind.NOT_APPROVED, revoked)
    return _stop_early(context, session) if session.cancel_by else None


def _stop_early(context: LoopContext, session: Session) -> Step:
    """Return the end of a session that was cancelled before it was submitted."""
    now = context.now()
    end = with_reason(session, End(EndKind.CANCELLED, by=session.cancel_by))
    changes = {"end": end, "ended": now, **set_condition()}
    words = f"by {session.cancel_by}{f': {session.cancel_reason}' if session.cancel_reason else ''}"
    return Step(Phase.CANCELLED, now + context.settings.keep, EventKind.CANCELLED, words, True, changes)
