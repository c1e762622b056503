"""Fair share: an account's places at its site, given out in turns so that everyone gets some."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sublet.booking.loop.context import LoopContext
from sublet.booking.loop.step import Step, deadline_of
from sublet.booking.model.marks import set_condition
from sublet.booking.model.session import Session
from sublet.booking.store.fair_share import SharePlace
from sublet.store.tx import Tx

LOOK = timedelta(seconds=30)  # between two checks; when a place comes free, the next in turn is woken at once


async def no_turn(context: LoopContext, session: Session) -> Step | None:
    """Return a step that holds a session back until its turn, or None if it may be submitted."""
    if context.platforms.noun_of(session.offer.platform) != "account":
        return None
    now = context.now()

    def ask(tx: Tx) -> SharePlace:
        place, chosen = tx.turns.ask(session, now)
        _wake(tx, [id for id in chosen if id != session.id], now)
        return place

    place = await context.store.write(ask)
    if place.taken:
        return None
    words = f"waits for a turn: {place.there} of the account's {place.capacity} jobs are there"
    latest = deadline_of(session)
    again = now + LOOK
    due = min(again, max(latest, now + timedelta(seconds=1))) if latest else again
    return Step(due=due, changes=set_condition(words))


def end_turn(tx: Tx, session: Session, now: datetime) -> None:
    """Free a session's place at the site, and wake the sessions whose turn it is now."""
    _wake(tx, tx.turns.end(session.id, now), now)


def _wake(tx: Tx, ids: Sequence[str], now: datetime) -> None:
    for id in ids:
        tx.sessions.change(id, now=now, due=now)
