"""Other brokers that requests are forwarded to, with their tokens sealed."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, func, insert, select, update

from sublet.booking.model.brokers import KnownBroker
from sublet.booking.model.timeline import micros, moment
from sublet.booking.store.tables import brokers
from sublet.kernel.db.sql import Row, Sql, bind, plain

B = brokers.c
ONE = B.name == bind("of_name")
ADD = insert(brokers)
LIST = select(B.name, B.url, B.token, B.older, B.created, B.changed, B.by).order_by(B.name)
GET = LIST.where(ONE)
SET_TOKEN = update(brokers).where(ONE).values(token=bind("sealed"), changed=bind("at"))
SEAL = update(brokers).where(ONE, B.token == bind("old")).values(token=bind("sealed"))
REMOVE = delete(brokers).where(ONE)
STAMP = select(func.count(), func.max(B.changed))


class BrokerStore:
    """The brokers, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def add(self, broker: KnownBroker, now: datetime) -> None:
        """Record a new broker."""
        row = {"name": plain(broker.name), "url": plain(broker.url), "token": broker.token, "by": plain(broker.by)}
        times = {"created": micros(now), "changed": micros(now)}
        self._sql.change(ADD, {**row, **times, "older": int(broker.is_older)})

    def get(self, name: str) -> KnownBroker | None:
        """Return a broker by its name, or None."""
        row = self._sql.row(GET, {"of_name": plain(name)})
        return _broker(row) if row else None

    def list(self) -> list[KnownBroker]:
        """List all brokers by name."""
        return [_broker(row) for row in self._sql.rows(LIST, {})]

    def set_token(self, name: str, token: str, now: datetime) -> bool:
        """Replace a broker's sealed token; return whether there is such a broker."""
        return self._sql.change(SET_TOKEN, {"of_name": plain(name), "sealed": token, "at": micros(now)}) > 0

    def seal(self, name: str, old: str, new: str) -> bool:
        """Replace the sealed form of a token; return whether it was still the old one."""
        return self._sql.change(SEAL, {"of_name": plain(name), "old": old, "sealed": new}) > 0

    def remove(self, name: str) -> bool:
        """Remove a broker; return whether it was there."""
        return self._sql.change(REMOVE, {"of_name": plain(name)}) > 0

    def stamp(self) -> tuple[int, int]:
        """Return a stamp that changes when a broker is added, changed or removed."""
        row = self._sql.row(STAMP, {}) or (0, 0)
        return int(row[0]), int(row[1] or 0)


def _broker(row: Row) -> KnownBroker:
    name, url, token, older, created, changed, by = row
    return KnownBroker(name, url, token, bool(older), moment(created), moment(changed), by)
