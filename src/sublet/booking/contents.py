"""Who may read a session's output and results; reading someone else's is recorded in the audit log."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sublet.booking.model.session import Session
from sublet.booking.sessions import Sessions
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import ContentsPrivate
from sublet.people.model.person import Person
from sublet.store.store import Store

ONE_LOOK = timedelta(minutes=10)  # reading again within this time is not recorded again
MOST_LOOKS = 1000


@dataclass
class Contents:
    """The check of who may read a session's output and results."""

    store: Store
    now: Clock
    authority: Authority
    sessions: Sessions

    _looks: dict[tuple[str, str, str], datetime] = field(default_factory=dict)  # person, session, part → when recorded

    async def session_to_read(self, name: str, person: Person, part: str) -> Session:
        """Return the session if this person may read that part of it (`output`, `results`, `request`), else raise."""
        session = await self.sessions.get(name, person)
        if session.person == person.name:
            return session
        can_read = self.authority.can_read(session.person, person)
        await self._record_look(session, person, part, can_read)
        if not can_read:
            raise ContentsPrivate(session=session.id[:8], person=session.person)
        return session

    async def _record_look(self, session: Session, person: Person, part: str, can_read: bool) -> None:
        now, key = self.now(), (person.name, session.id, f"{part} {can_read}")
        if key in self._looks and now - self._looks[key] < ONE_LOOK:
            return
        if len(self._looks) >= MOST_LOOKS:
            self._looks.clear()
        action = "session.read" if can_read else "session.read-refused"
        entry = AuditEntry(now, person.name, action, "session", session.id, {"person": session.person, "what": part})
        await self.store.write(lambda tx: tx.audit.add(entry))
        self._looks[key] = now
