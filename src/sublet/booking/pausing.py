"""Pausing and resuming a session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sublet.booking.model.events import EventKind
from sublet.booking.model.marks import PAUSED, set_condition
from sublet.booking.model.phases import Phase
from sublet.booking.model.refused_moves import refuse_move
from sublet.booking.model.session import Session, describe_pause
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.presenter import Presenter
from sublet.booking.recorded_clock import read_recorded_now
from sublet.booking.session_endings import write_down
from sublet.booking.sessions import Sessions
from sublet.booking.signals import Signals
from sublet.kernel.clock import Clock
from sublet.kernel.errors import PlatformRefused
from sublet.kernel.log import log
from sublet.people.model.person import Person
from sublet.platforms.port import INSTEAD
from sublet.store.store import Store
from sublet.store.tx import Tx

PAUSABLE = (Phase.PREPARING, Phase.AVAILABLE, Phase.RUNNING)
BY_DAEMONS = frozenset({"docker"})  # ways whose processes belong to a daemon, not to the job


@dataclass
class Pausing:
    """Pauses and resumes sessions, where the platform can."""

    store: Store
    now: Clock
    platforms: KnownPlatforms
    presenter: Presenter
    signals: Signals
    sessions: Sessions

    async def pause(self, name: str, person: Person) -> tuple[Session, str]:
        """Pause a session, and say how: held in its queue, or stopped where it runs. Its time limit keeps running."""
        session = await self._pausable(name, person, "paused")
        how = await self.platforms.of(session).pause(session.job)
        changes = set_condition(describe_pause(how), session.marks | PAUSED)
        return await self._tell(session, person, changes, EventKind.PAUSED, how), how

    async def resume(self, name: str, person: Person) -> tuple[Session, str]:
        """Resume a session, and say how."""
        session = await self._pausable(name, person, "resumed")
        how = await self.platforms.of(session).resume(session.job)
        changes = set_condition("", session.marks - PAUSED)
        return await self._tell(session, person, changes, EventKind.RESUMED, how), how

    async def _pausable(self, name: str, person: Person, wanted: str) -> Session:
        """Return the session, if its platform has its job; raise if it can't be paused or resumed."""
        session = await self.sessions.get_to_change(name, person)
        if session.phase not in PAUSABLE or not session.job or session.cancel_by:
            raise refuse_move(session.phase, wanted, session.id, is_being_cancelled=bool(session.cancel_by))
        if session.offer.way in BY_DAEMONS:
            why = f"the processes are {session.offer.way}'s own, and can't be stopped from here"
            raise PlatformRefused(platform=session.offer.platform, why=why, hint=INSTEAD)
        return session

    async def _tell(
        self, session: Session, person: Person, changes: dict[str, Any], event: EventKind, how: str
    ) -> Session:
        """Record the change; the loop looks at once, and then records what the platform reports."""

        def write(tx: Tx) -> Session | None:
            now = read_recorded_now(tx, self.now())
            tx.events.add(now, session.id, session.person, event, how, session.phase)
            write_down(tx, now, person, event.fact, session)
            return tx.sessions.change(session.id, when=PAUSABLE, now=now, due=now, **changes)

        changed = await self.store.write(write)
        log.info(event, session=session.id, platform=session.offer.platform, detail=how)
        await self.signals.announce()
        return (
            self.presenter.with_connectors(changed, person) if changed else await self.sessions.get(session.id, person)
        )
