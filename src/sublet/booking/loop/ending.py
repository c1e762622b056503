"""How a session with a job ends: by itself, by being cancelled, or because its platform has lost it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sublet.booking.loop.context import LoopContext
from sublet.booking.loop.step import GRACE, RETRY, Step, fail_early
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


async def give_up_lost(context: LoopContext, session: Session, platform: Platform, state: JobState) -> Step:
    """Report a job that its platform has no record of, and until when to wait; it is never restarted automatically."""
    now = context.now()
    lost = session.lost or now
    until = _give_up_at(context, session, state, lost)
    if session.lost is None:
        words = f"unknown: the platform has no record of it; if that stays so, it is given up at {until:%H:%M:%S} UTC"
        changes = {"lost": now, **set_condition(words, LOST)}
        return Step(None, min(until, now + RETRY), EventKind.LOST, words, changes=changes)
    if now < until:
        return Step(due=min(until, now + RETRY))
    if not _may_have_run(session, state):
        return await _end_unstarted(context, session, platform, lost)
    end = End(EndKind.UNKNOWN, detail=f"{session.offer.platform} has no record of it.")
    return Step(Phase.RELEASING, now, EventKind.ENDED, "unknown", changes={"end": end, "ended": now})


async def _end_unstarted(context: LoopContext, session: Session, platform: Platform, lost: datetime) -> Step:
    """End a session that was lost in a queue, after making sure that it never runs should the queue find it again."""
    name = session.offer.platform
    await platform.cancel([session.job], f"sublet, because {name} had no record of it")
    state = await ask_state(platform, session)
    if state.state is State.ENDED and state.end and state.end.kind is not EndKind.CANCELLED:
        return record_end(context, session, state)
    if state.state is State.RUNNING:
        return Step(due=context.now() + RETRY, changes={"lost": None, **set_condition()})
    now = context.now()
    why = f"It never ran: {name} lost it while it waited in the queue, and has had no record of it since"
    end = End(EndKind.NOT_STARTED, detail=f"{why} {lost:%Y-%m-%d %H:%M:%S} UTC.")
    changes = {"end": end, "ended": now, "started": None, **set_condition()}
    return Step(Phase.RELEASING, now, EventKind.ENDED, end.kind.value, changes=changes)


def _may_have_run(session: Session, state: JobState) -> bool:
    return session.phase is not Phase.PREPARING or bool(session.started or state.started)


def _give_up_at(context: LoopContext, session: Session, state: JobState, lost: datetime) -> datetime:
    """Return when to give up: after its time limit if the session may have run, else a while after it was lost."""
    if not _may_have_run(session, state):
        return lost + context.settings.lost_after
    until = session.until or (session.started or state.started or lost) + session.offer.duration
    return until + GRACE


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
