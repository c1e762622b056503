"""Visits to interactive sessions, recorded so that a session that nobody has open can be ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sublet.booking.model.idle import IdleEnd, choose_idle
from sublet.booking.model.marks import Mark
from sublet.booking.model.session import Session
from sublet.booking.recorded_clock import read_recorded_now
from sublet.kernel.clock import Clock
from sublet.kernel.settings import Settings
from sublet.store.store import Store
from sublet.store.tx import Tx

NOTES = 4  # records in the time after which an unvisited session ends; more would be needless writes
MOST_KNOWN = 10_000


@dataclass
class Visits:
    """Records visits to sessions, and says when a session ends for lack of them."""

    settings: Settings
    store: Store
    now: Clock
    _noted: dict[str, tuple[datetime, timedelta | None]] = field(default_factory=dict)  # when, and its idle limit
    _began: datetime | None = None  # nobody could visit before: this process was not there

    async def note(self, id: str) -> None:
        """Record that someone has this session open now."""
        now = self.now()
        before, idle = self._noted.get(id, (None, None))
        if before is None:
            idle = await self._find_idle(id)
        elif idle is None or now - before < idle / NOTES:
            return
        if len(self._noted) >= MOST_KNOWN:
            self._noted.clear()
        self._noted[id] = now, idle
        if idle is not None:
            await self.store.write(lambda tx: _note(tx, id, now))

    async def find_idle_end(self, session: Session) -> IdleEnd | None:
        """Return when a session ends unless someone opens it; None if it doesn't end for that."""
        now = self.now()
        self._began = self._began or now
        idle = await self._find_idle(session.id) if session.offer.interactive else None
        if idle is None:
            return None
        seen = await self.store.read(lambda tx: tx.visits.get(session.id))
        moments = filter(None, (seen, session.started, self._began))
        return IdleEnd(idle, max(moments), self.settings.warn)

    async def forget(self, id: str) -> None:
        """Forget the visits of a session that is over."""
        self._noted.pop(id, None)
        if await self.store.read(lambda tx: tx.visits.get(id)):
            await self.store.write(lambda tx: tx.visits.forget(id))

    async def _find_idle(self, id: str) -> timedelta | None:
        session = await self.store.read(lambda tx: tx.sessions.get(id))
        offerset = await self.store.read(lambda tx: tx.offersets.get(session.offerset)) if session else None
        return choose_idle(offerset.request.executable if offerset else None, self.settings.idle)


def _note(tx: Tx, id: str, now: datetime) -> None:
    """Record a visit; a session that was about to end for lack of visits is checked again."""
    now = read_recorded_now(tx, now)
    tx.visits.note(id, now)
    session = tx.sessions.get(id)
    if session and Mark.UNUSED in session.marks:
        tx.sessions.change(id, now=now, due=now)
