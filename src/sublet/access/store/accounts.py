"""Community accounts, with their keys sealed."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from pydantic import TypeAdapter
from sqlalchemy import delete, func, insert, select, update

from sublet.access.model.account import Account
from sublet.access.store.tables import accounts
from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.sql import Row, Sql, bind, dump, plain

ACCOUNT = TypeAdapter(Account)
C = accounts.c
ONE = C.name == bind("of_name")
ADD = insert(accounts)
ROWS = select(C.settings, C.created, C.changed, C.by)
GET = ROWS.where(ONE)
LIST = ROWS.order_by(C.name)
SET = update(accounts).where(ONE).values(settings=bind("s"), capacity=bind("most"), changed=bind("at"))
KEY = select(C.key).where(ONE)
KEYS = select(C.name, C.key).order_by(C.name)
SET_KEY = update(accounts).where(ONE).values(key=bind("sealed"))
REMOVE = delete(accounts).where(ONE)
STAMP = select(func.count(), func.max(C.changed))


class AccountStore:
    """The accounts, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def add(self, account: Account, key: str, now: datetime) -> None:
        """Add an account with its sealed key."""
        row = {"name": account.name, "settings": dump(ACCOUNT, account), "capacity": account.capacity, "key": key}
        self._sql.change(ADD, {**row, "created": micros(now), "changed": micros(now), "by": plain(account.by)})

    def change(self, account: Account, now: datetime) -> bool:
        """Update an account; return whether it exists."""
        row = {"s": dump(ACCOUNT, account), "most": account.capacity, "at": micros(now), "of_name": account.name}
        return self._sql.change(SET, row) > 0

    def get(self, name: str) -> Account | None:
        """Return an account by name."""
        return _account(self._sql.row(GET, {"of_name": plain(name)}))

    def list(self) -> list[Account]:
        """List all accounts, by name."""
        return [account for account in map(_account, self._sql.rows(LIST, {})) if account]

    def key(self, name: str) -> str:
        """Return an account's sealed key; empty if there is no such account."""
        row = self._sql.row(KEY, {"of_name": plain(name)})
        return "" if row is None else str(row[0])

    def keys(self) -> dict[str, str]:
        """Return the sealed keys of all accounts, by name."""
        return dict(self._sql.rows(KEYS, {}))

    def seal(self, name: str, key: str) -> None:
        """Replace an account's sealed key."""
        self._sql.change(SET_KEY, {"of_name": name, "sealed": key})

    def remove(self, name: str) -> bool:
        """Remove an account; return whether it was there."""
        return self._sql.change(REMOVE, {"of_name": plain(name)}) > 0

    def stamp(self) -> tuple[int, int]:
        """Return a stamp that changes when an account is added, changed or removed."""
        row = self._sql.row(STAMP, {}) or (0, 0)
        return int(row[0]), int(row[1] or 0)


def _account(row: Row | None) -> Account | None:
    if row is None:
        return None
    return replace(ACCOUNT.validate_json(row[0]), created=moment(row[1]), changed=moment(row[2]), by=row[3])
