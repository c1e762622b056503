"""Events of sessions, in the order in which they were committed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import func, insert, select, text

from sublet.booking.model.events import KINDS, Event, EventKind
from sublet.booking.model.timeline import micros, moment
from sublet.booking.store.tables import events
from sublet.kernel.db.sql import Row, Sql, bind, plain

ADD = insert(events).values({name: bind(name) for name in ("time", "session", "person", "kind", "detail", "phase")})
NEWEST = select(func.max(events.c.id))
COLUMNS = (
    events.c.id,
    events.c.time,
    events.c.session,
    events.c.person,
    events.c.kind,
    events.c.detail,
    events.c.phase,
)
_base = select(*COLUMNS).where(events.c.id > bind("after_id")).order_by(events.c.id).limit(bind("most"))
_session = events.c.session == bind("of_session")
_person = events.c.person == bind("of_person")
AFTER = {
    (False, False): _base,
    (True, False): _base.where(_session),
    (False, True): _base.where(_person),
    (True, True): _base.where(_session, _person),
}
ONE = select(*COLUMNS).where(events.c.id == bind("event_id"))
EVER = {
    "sqlite": text("SELECT seq FROM sqlite_sequence WHERE name = 'events'"),
    "postgresql": text("SELECT pg_sequence_last_value(pg_get_serial_sequence('events', 'id')::regclass)"),
}


class EventStore:
    """The events, as one transaction sees and adds to them."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction; added events are written together, when it ends."""
        self._sql = sql
        self._added: list[dict[str, Any]] = []
        self._settled = 0

    def add(
        self, time: datetime, session: str, person: str, kind: EventKind, detail: str = "", phase: str = ""
    ) -> None:
        """Add an event; `after` returns it once this write is committed."""
        self._added.append(
            {
                "time": micros(time),
                "session": session,
                "person": plain(person),
                "kind": EventKind(kind).value,
                "detail": plain(detail),
                "phase": str(phase),
            }
        )

    def after(
        self, id: int = 0, *, session: str | None = None, person: str | None = None, limit: int = 1000
    ) -> list[Event]:
        """Return the events that were committed after this one, oldest first.

        Continuing from the last id misses nothing: ids are given while no other process writes (SQLite's transaction,
        PostgreSQL's advisory lock), so that a smaller id is never committed after a larger one.
        """
        statement = AFTER[session is not None, person is not None]
        params = {"after_id": id, "most": limit, "of_session": session, "of_person": person}
        used = {
            name: plain(value) if isinstance(value, str) else value
            for name, value in params.items()
            if value is not None
        }
        return [_event(row) for row in self._sql.rows(statement, used)]

    def get(self, id: int) -> Event | None:
        """Return one event, or None if it was removed."""
        row = self._sql.row(ONE, {"event_id": id})
        return None if row is None else _event(row)

    def newest(self) -> int:
        """Return the id of the last event, or 0 if there is none."""
        row = self._sql.row(NEWEST, {})
        return int(row[0]) if row and row[0] is not None else 0

    def count_ever(self) -> int:
        """Count all events that there have ever been, including removed ones."""
        row = self._sql.row(EVER[self._sql.dialect], {})
        return int(row[0]) if row and row[0] is not None else 0

    def settle(self) -> None:
        """Keep the events of one unit of work."""
        self._settled = len(self._added)

    def revert(self) -> None:
        """Drop the events of one unit of work."""
        del self._added[self._settled :]

    def flush(self) -> None:
        """Write the added events."""
        self._sql.change_many(ADD, self._added)
        self._added = []
        self._settled = 0


def _event(row: Row) -> Event:
    id, time, session, person, kind, detail, phase = row
    return Event(id, moment(time), session, person, KINDS.get(kind, EventKind.UNKNOWN), detail, phase)
