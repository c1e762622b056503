"""When interactive sessions were last open."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, insert, select, update

from sublet.booking.model.timeline import micros, moment
from sublet.booking.store.tables import visits
from sublet.kernel.db.sql import Sql, bind

V = visits.c
GET = select(V.seen).where(V.session == bind("of_session"))
ADD = insert(visits)
SEE = update(visits).where(V.session == bind("of_session"), V.seen < bind("at")).values(seen=bind("at"))
FORGET = delete(visits).where(V.session == bind("of_session"))


class VisitStore:
    """Visits, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def note(self, session: str, now: datetime) -> None:
        """Record that someone has a session open now."""
        if self._sql.row(GET, {"of_session": session}) is None:
            self._sql.change(ADD, {"session": session, "seen": micros(now)})
        else:
            self._sql.change(SEE, {"of_session": session, "at": micros(now)})

    def get(self, session: str) -> datetime | None:
        """Return when someone last had a session open; None if nobody had."""
        row = self._sql.row(GET, {"of_session": session})
        return moment(row[0]) if row else None

    def forget(self, session: str) -> None:
        """Remove the visits of a session, because it is over."""
        self._sql.change(FORGET, {"of_session": session})
