"""Brokers' tokens that were used, as each counts only once."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, insert, select

from sublet.booking.model.timeline import micros
from sublet.kernel.db.sql import Sql, bind, plain
from sublet.people.store.tables import shown_assertions

S = shown_assertions.c
USED = select(S.id).where(S.id == bind("of"))
USE = insert(shown_assertions)
FORGET = delete(shown_assertions).where(S.until < bind("now"))


class AssertionStore:
    """The used tokens, as one transaction sees and adds to them."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def use(self, id: str, until: datetime, now: datetime) -> bool:
        """Mark a token as used; return whether it was new. Expired ones are removed."""
        self._sql.change(FORGET, {"now": micros(now)})
        if self._sql.row(USED, {"of": plain(id)}):
            return False
        self._sql.change(USE, {"id": plain(id), "until": micros(until)})
        return True
