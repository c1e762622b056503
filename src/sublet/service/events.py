"""What happened: the record that SSE, `explain` and the pages read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from sublet.core.session import Event
from sublet.service.desk import Person
from sublet.service.sessions import Sessions


class Events(Sessions):
    """Events of a person's sessions, oldest first."""

    async def events(
        self, person: Person, *, after: int = 0, session: str | None = None, limit: int = 100
    ) -> Sequence[Event]:
        """Those with a number above `after`."""
        id = (await self.session(session, person)).id if session else None
        who = None if person.operator and id else person.name
        return await self.store.read(lambda tx: tx.events.after(after, session=id, person=who, limit=limit))

    async def watch(self, person: Person, *, after: int = 0, session: str | None = None) -> AsyncIterator[Event | None]:
        """Each event as it comes; None now and then, so that a connection can be kept alive."""
        quiet = 0
        while True:
            some = await self.events(person, after=after, session=session)
            for event in some:
                after = event.id
                yield event
            if some:
                quiet = 0
                continue
            await self.wait_for_news(1.0)
            quiet += 1
            if quiet % 15 == 0:
                yield None
