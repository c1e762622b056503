"""Sign-in codes: one at a time for each address, stored only as a keyed hash."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, insert, select, update

from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.sql import Sql, bind, plain
from sublet.people.store.tables import codes

C = codes.c
COLUMNS = (C.id, C.address, C.host, C.hash, C.created, C.expires, C.tries)
ADD = insert(codes)
OPEN = select(*COLUMNS).where(C.address == bind("of"), C.expires > bind("now")).order_by(C.created.desc())
CLOSE = update(codes).where(C.address == bind("of"), C.expires > bind("now")).values(expires=bind("now"))
TRY = update(codes).where(C.id == bind("of"), C.tries < bind("most")).values(tries=C.tries + 1)
SINCE = select(C.host, C.created).where(C.address == bind("of"), C.created > bind("since")).order_by(C.created)
FORGET = delete(codes).where(C.created <= bind("before"))


@dataclass(frozen=True, slots=True)
class Code:
    """A sign-in code, known only by its hash."""

    id: str
    address: str
    host: str  # who asked for it
    hash: str
    created: datetime
    expires: datetime
    tries: int = 0


class Codes:
    """The codes, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def add(self, code: Code) -> None:
        """Store the address's new code, and invalidate older ones."""
        self.close(code.address, code.created)
        row = {"id": code.id, "address": plain(code.address), "host": plain(code.host), "hash": code.hash}
        times = {"created": micros(code.created), "expires": micros(code.expires)}
        self._sql.change(ADD, row | times | {"tries": code.tries})

    def open(self, address: str, now: datetime) -> Code | None:
        """Return an address's code, if it is still valid."""
        row = self._sql.row(OPEN, {"of": plain(address), "now": micros(now)})
        if row is None:
            return None
        id, address, host, hash, created, expires, tries = row
        return Code(id, address, host, hash, moment(created), moment(expires), tries)

    def close(self, address: str, now: datetime) -> bool:
        """Invalidate an address's code; return whether there was a valid one."""
        return self._sql.change(CLOSE, {"of": plain(address), "now": micros(now)}) > 0

    def count_try(self, id: str, most: int) -> bool:
        """Count an attempt; return whether it was within the limit."""
        return self._sql.change(TRY, {"of": id, "most": most}) > 0

    def since(self, address: str, since: datetime) -> list[tuple[str, datetime]]:
        """Return who asked for an address's codes since then and when, oldest first."""
        rows = self._sql.rows(SINCE, {"of": plain(address), "since": micros(since)})
        return [(host, moment(created)) for host, created in rows]

    def forget(self, before: datetime) -> None:
        """Remove codes that no rate limit counts any more."""
        self._sql.change(FORGET, {"before": micros(before)})
