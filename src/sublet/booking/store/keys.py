"""Idempotency keys: each is bound to the request that it first came with."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256

from sqlalchemy import delete, insert, select

from sublet.booking.model.timeline import micros
from sublet.booking.store.tables import keys
from sublet.kernel.db.sql import Sql, bind, plain
from sublet.kernel.errors import KeyReused

GET = select(keys.c.digest).where(keys.c.person == bind("of_person"), keys.c.key == bind("of_key"))
ADD = insert(keys)
FORGET = delete(keys).where(keys.c.created < bind("before"))


class Keys:
    """The keys, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def bind(self, person: str, action: str, key: str, request: str, now: datetime) -> bool:
        """Bind a key to a request, and return whether it is new; raise KeyReused if it was used for another."""
        digest = sha256(request.encode()).hexdigest()
        name = plain(f"{action} {key}")
        row = self._sql.row(GET, {"of_person": plain(person), "of_key": name})
        if row is None:
            self._sql.change(ADD, {"person": plain(person), "key": name, "digest": digest, "created": micros(now)})
            return True
        if row[0] != digest:
            raise KeyReused(key=key)
        return False

    def forget(self, before: datetime) -> int:
        """Remove the keys that are older, and count them."""
        return self._sql.change(FORGET, {"before": micros(before)})
