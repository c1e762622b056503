"""What happened: the record that SSE, `explain` and the pages read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from sublet.booking.model.events import Event
from sublet.booking.sessions import Sessions
from sublet.booking.signals import Signals
from sublet.people.model.person import Person
from sublet.store.store import Store

SHORT_PAGE = 100  # events, which are found by their index: read at once
QUIET = 40.0  # seconds after which a connection is shown to be alive


@dataclass
class Events:
    """Events of a person's sessions, oldest first."""

    store: Store
    signals: Signals
    sessions: Sessions

    async def events(
        self, person: Person, *, after: int = 0, session: str | None = None, limit: int = 100
    ) -> Sequence[Event]:
        """Those with a number above `after`."""
        id = (await self.sessions.get(session, person)).id if session else None
        who = None if person.operator and id else person.name
        look = self.store.glance if limit <= SHORT_PAGE else self.store.read
        return await look(lambda tx: tx.events.after(after, session=id, person=who, limit=limit))

    async def watch(self, person: Person, *, after: int = 0, session: str | None = None) -> AsyncIterator[Event | None]:
        """Each event as it comes; None now and then, so that a connection can be kept alive."""
        key = {"session": session} if session else {"person": person.name}
        with self.signals.feed.listen(self.store, **key) as bell:
            while True:
                bell.clear()
                some = await self.events(person, after=after, session=session)
                for event in some:
                    after = event.id
                    yield event
                while not some and not await bell.wait(QUIET):
                    yield None  # the bell would have rung: there is nothing to read
