"""Sessions that are given up: their platform has lost them, or they waited in its queue for too long."""

from __future__ import annotations

from datetime import datetime

from sublet.booking.loop.context import LoopContext
from sublet.booking.loop.ending import LOST, ask_state, record_end
from sublet.booking.loop.step import GRACE, RETRY, Step, fail_early
from sublet.booking.model.events import EventKind
from sublet.booking.model.job import JobState, State
from sublet.booking.model.marks import Mark, set_condition
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import End, EndKind, Session
from sublet.platforms.port import Platform

GIVEN_UP = frozenset({Mark.GIVEN_UP})


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
        return await give_up_queued(context, session, platform)
    end = End(EndKind.UNKNOWN, detail=f"{session.offer.platform} has no record of it.")
    return Step(Phase.RELEASING, now, EventKind.ENDED, "unknown", changes={"end": end, "ended": now})


async def give_up_queued(context: LoopContext, session: Session, platform: Platform) -> Step:
    """End a session that must not start any more: it was lost in its queue, or waited there too long.

    That is recorded before its job is cancelled, so that its end has the true reason even if the answer to the
    cancellation is lost, or the service is killed before the end is recorded.
    """
    if Mark.GIVEN_UP not in session.marks:
        words = "it is being taken out of the queue"
        return Step(due=context.now(), changes=set_condition(words, session.marks | GIVEN_UP))
    await platform.cancel([session.job], _describe_given_up(session))
    state = await ask_state(platform, session)
    if session.lost and state.state is State.RUNNING:
        return Step(due=context.now() + RETRY, changes={"lost": None, **set_condition()})
    return _end(context, session, state)


def end_given_up(context: LoopContext, session: Session, state: JobState) -> Step | None:
    """Return the end of a session that was given up, if its job is over; None if not, or if someone cancelled it."""
    if Mark.GIVEN_UP not in session.marks or session.cancel_by:
        return None
    is_over = state.state is State.ENDED or (state.state is State.UNKNOWN and session.lost is None)
    return _end(context, session, state) if is_over else None


def _end(context: LoopContext, session: Session, state: JobState) -> Step:
    """Return why the session was given up as its end, unless its job ended by itself before."""
    if state.state is State.ENDED and state.end and state.end.kind is not EndKind.CANCELLED:
        return record_end(context, session, state)
    if session.lost is None:
        return fail_early(context, EndKind.WINDOW_PASSED, "It was still in the queue when the asked window ended.")
    now = context.now()
    why = f"It never ran: {session.offer.platform} lost it while it waited in the queue, and has had no record of it"
    end = End(EndKind.NOT_STARTED, detail=f"{why} since {session.lost:%Y-%m-%d %H:%M:%S} UTC.")
    changes = {"end": end, "ended": now, "started": None, **set_condition()}
    return Step(Phase.RELEASING, now, EventKind.ENDED, end.kind.value, changes=changes)


def _describe_given_up(session: Session) -> str:
    why = f"{session.offer.platform} had no record of it" if session.lost else "its window had passed"
    return f"sublet, because {why}"


def _may_have_run(session: Session, state: JobState) -> bool:
    return session.phase is not Phase.PREPARING or bool(session.started or state.started)


def _give_up_at(context: LoopContext, session: Session, state: JobState, lost: datetime) -> datetime:
    """Return when to give up: after its time limit if the session may have run, else a while after it was lost."""
    if not _may_have_run(session, state):
        return lost + context.settings.lost_after
    until = session.until or (session.started or state.started or lost) + session.offer.duration
    return until + GRACE
