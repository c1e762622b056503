"""A session that another broker runs: accepted there once, however often that is tried, and given up if necessary."""

from __future__ import annotations

from contextlib import suppress

from sublet.booking.loop.context import LoopContext
from sublet.booking.loop.ending import end_waiting
from sublet.booking.loop.held_back import hold_back
from sublet.booking.loop.step import Step, fail_early
from sublet.booking.model.events import EventKind
from sublet.booking.model.marks import set_condition
from sublet.booking.model.offer import Remote
from sublet.booking.model.session import EndKind, Session
from sublet.kernel.errors import LoginNeeded, PlatformRefused, PlatformUnreachable
from sublet.kernel.faults import point
from sublet.kernel.shortage import find_shortage
from sublet.platforms.brokering import PassesOn


async def prepare_remote(context: LoopContext, session: Session, broker: PassesOn, terms: Remote) -> Step:
    """Accept the session at the other broker, or give it up there; nothing is staged from here."""
    context.loop_state.fresh.discard(session.id)  # a step that accepts it elsewhere must not be interrupted
    if step := await end_waiting(context, session):
        await _give_up(session, broker, terms)
        return step
    return await hold_back(context, session) or await _take(context, session, broker, terms)


async def _take(context: LoopContext, session: Session, broker: PassesOn, terms: Remote) -> Step:
    """Accept the offer at the other broker; if that refuses, the session fails as not started."""
    point("submit.before")
    try:
        job = await broker.take(terms, session.person, session.id)
    except PlatformRefused as error:
        if find_shortage(error):
            raise
        return fail_early(context, EndKind.NOT_STARTED, error.message)
    point("submit.after")
    changes = {"job": job, **set_condition()}
    return Step(due=context.now(), event=EventKind.SUBMITTED, detail=f"at {terms.url}", changes=changes)


async def _give_up(session: Session, broker: PassesOn, terms: Remote) -> None:
    """Give up a session that an earlier try may have accepted at the broker; if that fails, the outbox tries again."""
    with suppress(PlatformUnreachable, PlatformRefused, LoginNeeded):
        await broker.give_up(terms.url, session.person, session.cancel_by)
