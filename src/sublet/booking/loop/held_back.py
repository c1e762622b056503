"""Sessions that wait while their platform is drained, and booking them again afterwards."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from sublet.booking.loop.context import LoopContext
from sublet.booking.loop.step import GRACE, Step, deadline_of, fail_early
from sublet.booking.model.drain import Drain
from sublet.booking.model.events import EventKind
from sublet.booking.model.holds import takes_of
from sublet.booking.model.marks import Mark, set_condition
from sublet.booking.model.phases import Phase
from sublet.booking.model.pledge import pool_of
from sublet.booking.model.request import Request, Window
from sublet.booking.model.session import EndKind, Session
from sublet.store.tx import Tx

LOOK = timedelta(seconds=30)
WAIT = (Phase.ACCEPTED, Phase.WAITING, Phase.PREPARING)
MOST = 1000
HELD_BACK = frozenset({Mark.HELD_BACK})


def is_held(session: Session) -> bool:
    """Whether a drain can hold a session back: it was accepted, and its platform does not have it yet."""
    return session.phase in WAIT and not session.job


def holds_back(drain: Drain, session: Session) -> bool:
    """Whether this drain holds a session back; not if the drain is over before the session's start."""
    booked = session.offer.is_in_calendar
    return is_held(session) and not (booked and drain.until and session.start and session.start >= drain.until)


async def hold_back(context: LoopContext, session: Session) -> Step | None:
    """Return a step that holds a session back while its platform is drained, or None if it may continue."""
    now = context.now()
    drain = await context.store.read(lambda tx: tx.drains.get(session.offer.platform, now))
    if drain is None:
        return None
    deadline = deadline_of(session)
    if deadline and now >= deadline + GRACE:
        return fail_early(context, EndKind.WINDOW_PASSED, drain.sentence)
    again = min(at for at in (now + LOOK, drain.until, deadline and deadline + GRACE) if at)
    return Step(due=again, changes=set_condition(drain.sentence, HELD_BACK))


def go_on(tx: Tx, platform: str, now: datetime, horizon: timedelta) -> None:
    """Wake the sessions that a drain held back, now that it is over, and rebook those whose start has passed."""
    for session in tx.sessions.list(platform=platform, phases=WAIT, limit=MOST).items:
        if is_held(session) and not session.cancel_by:
            tx.sessions.change(session.id, now=now, due=now, **set_condition())
            if session.offer.is_in_calendar and session.start and session.start < now:
                _book_later(tx, session, now, horizon)


def _book_later(tx: Tx, session: Session, now: datetime, horizon: timedelta) -> None:
    """Book the whole duration again, as early as the request allows; if there is no room, keep what is left."""
    asked, offer = tx.offersets.get(session.offerset), session.offer
    soonest = now.replace(microsecond=0) + timedelta(seconds=1) + offer.prepare
    windows = _windows(asked.request, soonest, horizon) if asked else []
    if not windows:
        return
    taken = tx.books.release(offer.platform, session.id)
    slot = tx.books.calendar(offer.platform).earliest(
        offer.shape,
        len(offer.nodes),
        offer.duration,
        windows,
        storage=offer.pool_sizes,
        lead=offer.prepare,
        tail=offer.release,
        pledge=pool_of(offer.pledge),
    )
    if slot is None:
        tx.books.keep(offer.platform, session.id, taken)
        return
    later = replace(offer, start=slot.start, latest_start=slot.start, nodes=slot.nodes)
    tx.books.take(offer.platform, session.id, takes_of(later))
    until = slot.start + offer.duration
    tx.sessions.change(session.id, when=WAIT, now=now, offer=later, start=slot.start, until=until, due=now)
    words = f"from {session.start:%Y-%m-%dT%H:%M:%SZ} to {slot.start:%Y-%m-%dT%H:%M:%SZ}"
    tx.events.add(now, session.id, session.person, EventKind.MOVED, words, session.phase)


def _windows(request: Request, soonest: datetime, horizon: timedelta) -> list[Window]:
    """Return the requested windows in which the session may still start."""
    if request.recurring:
        return []
    if not request.windows:
        return [Window(soonest, soonest + horizon)]
    return [Window(max(window.start, soonest), window.end) for window in request.windows if window.end > soonest]
