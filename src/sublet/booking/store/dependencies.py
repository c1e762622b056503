"""Which sessions wait for which others, and how those ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import insert, select, update

from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Dependency
from sublet.booking.store.tables import dependencies
from sublet.kernel.db.sql import Sql, bind, plain

D = dependencies.c
ADD = insert(dependencies)
OF = select(D.after, D.phase, D.words).where(D.session == bind("of_session")).order_by(D.after)
WAITING = select(D.session).where(D.after == bind("for_session"), D.phase.is_(None))
SETTLE = (
    update(dependencies)
    .where(D.after == bind("for_session"), D.phase.is_(None))
    .values(phase=bind("new_phase"), words=bind("new_words"))
)


class Dependencies:
    """The dependencies, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def add(self, session: str, dependencies: Iterable[Dependency]) -> None:
        """Record the sessions that a session waits for."""
        rows = [
            {"session": session, "after": dependency.id, "phase": dependency.phase, "words": plain(dependency.words)}
            for dependency in dependencies
        ]
        self._sql.change_many(ADD, rows)

    def of(self, session: str) -> list[Dependency]:
        """Return the sessions that a session waits for."""
        rows = self._sql.rows(OF, {"of_session": session})
        return [Dependency(id, Phase(phase) if phase else None, words) for id, phase, words in rows]

    def settle(self, after: str, phase: Phase, words: str) -> Sequence[str]:
        """Record that a session is over, and return the sessions that waited for it."""
        waiting = [id for (id,) in self._sql.rows(WAITING, {"for_session": after})]
        if waiting:
            self._sql.change(SETTLE, {"for_session": after, "new_phase": phase.value, "new_words": plain(words)})
        return waiting
