"""Notices for visitors of an interactive session: what it waits for, when it ends, and where to extend it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sublet.booking.explain import Explain
from sublet.booking.model.marks import Mark
from sublet.booking.model.phases import NOT_YET, Phase
from sublet.booking.presenter import Presenter
from sublet.people.model.person import Person
from sublet.store.store import Store


@dataclass(frozen=True)
class SessionNotice:
    """The state of a session, for its visitors."""

    name: str
    phase: Phase
    sentences: tuple[str, ...]
    page: str  # the address of its page here
    ends: datetime | None = None
    is_warned: bool = False

    @property
    def is_coming(self) -> bool:
        """Whether the session will be ready by itself."""
        return self.phase in NOT_YET


@dataclass
class SessionNotices:
    """Describes sessions to visitors who have shown the session's secret."""

    store: Store
    presenter: Presenter
    explanations: Explain

    async def describe(self, id: str) -> SessionNotice | None:
        """Return the present notice of a session; None if there is no such session."""
        known = await self.store.read(lambda tx: tx.sessions.get(id))
        if known is None:
            return None
        session, sentences = await self.explanations.explain(id, Person(known.person))
        return SessionNotice(
            session.name,
            session.phase,
            tuple(sentences),
            self.presenter.page(f"sessions/{id}"),
            session.until,
            Mark.WARNED in session.marks,
        )
