"""The audit log: who did what, and whether it was allowed; rows are only ever added."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Column, Index, Table, Text, insert, select

from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.schema import Serial, metadata
from sublet.kernel.db.sql import Row, Sql, bind, plain

audit = Table(
    "audit",
    metadata,
    Column("id", Serial, primary_key=True),
    Column("time", BigInteger, nullable=False),
    Column("person", Text, nullable=False),  # who did it; empty: unknown
    Column("action", Text, nullable=False),  # such as rule.add, sign-in.refused
    Column("noun", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("host", Text, nullable=False),
    Index(None, "time"),
    Index(None, "person", "id"),
    Index(None, "noun", "name", "id"),
    sqlite_autoincrement=True,
)

ADD = insert(audit).values({column.name: bind(column.name) for column in audit.c if column is not audit.c.id})


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One action in the audit log."""

    time: datetime
    person: str  # who did it; empty: unknown
    action: str  # such as rule.add or sign-in.refused
    noun: str = ""
    name: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    host: str = ""
    id: int = 0  # 0 until it is stored


class Audit:
    """The audit log, as one transaction reads it and adds to it."""

    def __init__(self, sql: Sql) -> None:
        """Collect added entries, to write them together when the transaction ends."""
        self._sql = sql
        self._added: list[dict[str, Any]] = []
        self._settled = 0

    def add(self, entry: AuditEntry) -> None:
        """Add an entry, which must not contain secrets; `list` returns it only after the commit."""
        self._added.append(
            {
                "time": micros(entry.time),
                "person": plain(entry.person),
                "action": entry.action,
                "noun": entry.noun,
                "name": plain(entry.name),
                "detail": json.dumps(entry.detail),
                "host": plain(entry.host),
            }
        )

    def settle(self) -> None:
        """Keep the entries of the unit of work that has just succeeded."""
        self._settled = len(self._added)

    def revert(self) -> None:
        """Discard the entries of the unit of work that has just failed."""
        del self._added[self._settled :]

    def flush(self) -> None:
        """Insert the collected entries."""
        self._sql.change_many(ADD, self._added)
        self._added, self._settled = [], 0

    def list(
        self,
        *,
        person: str = "",
        action: str = "",
        noun: str = "",
        name: str = "",
        since: datetime | None = None,
        until: datetime | None = None,
        after: int = 0,
        before: int | None = None,
        limit: int = 100,
    ) -> list[AuditEntry]:
        """Return entries in the order in which they were written, from after the id `after`.

        With `before`, the newest come first: those before that id, or all of them if it is 0.
        """
        order = audit.c.id if before is None else audit.c.id.desc()
        query = select(audit).where(audit.c.id > after).order_by(order).limit(limit)
        query = query.where(audit.c.id < before) if before else query
        for column, value in ((audit.c.person, person), (audit.c.noun, noun), (audit.c.name, name)):
            query = query.where(column == value) if value else query
        query = query.where(audit.c.action.startswith(action, autoescape=True)) if action else query
        query = query.where(audit.c.time >= micros(since)) if since else query
        query = query.where(audit.c.time < micros(until)) if until else query
        return [_entry(row) for row in self._sql.select(query)]


def _entry(row: Row) -> AuditEntry:
    id, time, person, action, noun, name, detail, host = row
    return AuditEntry(moment(time), person, action, noun, name, json.loads(detail), host, id)
