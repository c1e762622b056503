"""The events of sessions, which SSE, `explain` and the pages read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from sublet.booking.model.events import Event
from sublet.booking.sessions import Sessions
from sublet.booking.signals import Signals
from sublet.people.model.person import Person
from sublet.store.store import Store

SHORT_PAGE = 100  # events; few enough to read in the event loop
QUIET = 40.0  # seconds between keep-alives


@dataclass
class Events:
    """The events of a person's sessions, oldest first."""

    store: Store
    signals: Signals
    sessions: Sessions

    async def events(
        self, person: Person, *, after: int = 0, session: str | None = None, limit: int = 100
    ) -> Sequence[Event]:
        """Return the events with an id above `after`."""
        id = (await self.sessions.get(session, person)).id if session else None
        who = None if person.operator and id else person.name
        look = self.store.glance if limit <= SHORT_PAGE else self.store.read
        return await look(lambda tx: tx.events.after(after, session=id, person=who, limit=limit))

    async def watch(self, person: Person, *, after: int = 0, session: str | None = None) -> AsyncIterator[Event | None]:
        """Yield each event as it happens, and None now and then, to keep a connection alive."""
        key = {"session": session} if session else {"person": person.name}
        with self.signals.feed.listen(self.store, **key) as bell:
            while True:
                bell.clear()
                some = await self.events(person, after=after, session=session)
                for event in some:
                    after = event.id
                    yield event
                while not some and not await bell.wait(QUIET):
                    yield None  # the bell would have rung if there were something to read
