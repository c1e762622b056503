"""Where an interactive session's server listens, for the proxy."""

from __future__ import annotations

from dataclasses import dataclass

from sublet.booking.model.phases import STARTED
from sublet.booking.model.refused_moves import refuse_move
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.ports import CurrentPeople
from sublet.booking.visits import Visits
from sublet.kernel.errors import NotFound, NotYours, PlatformUnreachable, SessionElsewhere
from sublet.people.model.person import Person
from sublet.platforms.brokering import PassesOn
from sublet.store.store import Store


@dataclass
class Connect:
    """Access to interactive sessions, for the proxy."""

    store: Store
    platforms: KnownPlatforms
    people: CurrentPeople
    visits: Visits

    async def upstream(self, id: str) -> str:
        """Return the address behind /connect/{id}; the server there asks visitors for the session's secret."""
        session = await self.store.read(lambda tx: tx.sessions.get(id))
        if session is None:
            raise NotFound(noun="session", name=id)
        if await self.people.as_now(Person(session.person)) is None:
            raise NotYours("The owner of this session is blocked.", hint="Ask an operator of this service.")
        if session.phase not in STARTED:
            raise refuse_move(session.phase, "opened", id)
        platform = self.platforms.of(session)
        states = await platform.ask([session.job])
        state = states.get(session.job)
        if state is None or state.connector is None:
            raise PlatformUnreachable(platform=session.offer.platform, why="the session does not listen (yet)")
        if isinstance(platform, PassesOn):
            location = state.connector.location
            raise SessionElsewhere(location=location, is_own=platform.has_address(location))
        return state.connector.location

    async def may_stay(self, id: str) -> bool:
        """Whether connections to a session may stay open: it exists, and its owner is not blocked."""
        session = await self.store.read(lambda tx: tx.sessions.get(id))
        return session is not None and await self.people.as_now(Person(session.person)) is not None

    async def note_visit(self, id: str) -> None:
        """Record that someone has the session open now."""
        await self.visits.note(id)
