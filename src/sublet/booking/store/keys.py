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
        if self.is_bound(person, action, key, request):
            return False
        row = {"person": plain(person), "key": plain(f"{action} {key}"), "digest": _digest(request)}
        self._sql.change(ADD, row | {"created": micros(now)})
        return True

    def is_bound(self, person: str, action: str, key: str, request: str) -> bool:
        """Whether a key is bound to this request; raise KeyReused if it was used for another."""
        row = self._sql.row(GET, {"of_person": plain(person), "of_key": plain(f"{action} {key}")})
        if row and row[0] != _digest(request):
            raise KeyReused(key=key)
        return row is not None

    def forget(self, before: datetime) -> int:
        """Remove the keys that are older, and count them."""
        return self._sql.change(FORGET, {"before": micros(before)})


def _digest(request: str) -> str:
    return sha256(request.encode()).hexdigest()
