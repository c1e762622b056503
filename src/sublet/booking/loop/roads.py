"""Records by which roads a session's data got to where it runs."""

from __future__ import annotations

from collections.abc import Sequence

from sublet.booking.loop.context import LoopContext
from sublet.booking.model.events import EventKind
from sublet.booking.model.session import Session
from sublet.data.model.roads import TakenRoad
from sublet.store.tx import Tx


async def tell_roads(context: LoopContext, session: Session, roads: Sequence[TakenRoad]) -> None:
    """Record an event for each road by which the session's data was brought."""
    now = context.now()
    details = [road.describe(session.offer.platform) for road in roads]

    def write(tx: Tx) -> None:
        for detail in details:
            tx.events.add(now, session.id, session.person, EventKind.STAGED, detail)

    if details:
        await context.store.write(write)
        await context.signals.announce()
