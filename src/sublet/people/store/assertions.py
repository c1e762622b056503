"""Tokens of brokers that were used: each counts once."""

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
    """Those that were used, as one transaction sees and adds to them."""

    def __init__(self, sql: Sql) -> None:
        """Of this transaction."""
        self._sql = sql

    def use(self, id: str, until: datetime, now: datetime) -> bool:
        """Use one; whether it was not used before. What has expired is forgotten."""
        self._sql.change(FORGET, {"now": micros(now)})
        if self._sql.row(USED, {"of": plain(id)}):
            return False
        self._sql.change(USE, {"id": plain(id), "until": micros(until)})
        return True
