"""Measured transfers: the newest of each source, system and hop."""

from __future__ import annotations

from datetime import datetime
from uuid import uuid4

from sqlalchemy import delete, insert, select

from sublet.booking.model.timeline import micros, moment
from sublet.data.model.throughput import KEPT_EACH, Hop, Transfer
from sublet.data.store.tables import transfers
from sublet.kernel.db.sql import Sql, bind, plain

T = transfers.c
ADD = insert(transfers)
_alike = (T.source == bind("of_source"), T.system == bind("of_system"), T.hop == bind("of_hop"))
_newest = select(T.id).where(*_alike).order_by(T.ended.desc(), T.id).limit(KEPT_EACH)
TRIM = delete(transfers).where(*_alike, T.id.not_in(_newest))
SINCE = (
    select(T.ended, T.source, T.system, T.hop, T.bytes, T.micros)
    .where(T.ended >= bind("after"))
    .order_by(T.ended.desc(), T.id)
    .limit(bind("most"))
)
FORGET = delete(transfers).where(T.ended < bind("before"))


class TransferStore:
    """Transfers, as one transaction sees and adds to them."""

    def __init__(self, sql: Sql) -> None:
        """Work in this transaction."""
        self._sql = sql

    def add(self, transfer: Transfer) -> None:
        """Record a transfer, and keep only the newest with the same source, system and hop."""
        alike = {"source": plain(transfer.source), "system": plain(transfer.system), "hop": transfer.hop.value}
        measured = {"bytes": transfer.bytes, "micros": round(transfer.seconds * 1_000_000)}
        self._sql.change(ADD, {"id": str(uuid4()), "ended": micros(transfer.ended), **alike, **measured})
        self._sql.change(TRIM, {f"of_{name}": value for name, value in alike.items()})

    def since(self, after: datetime, most: int) -> list[Transfer]:
        """List the transfers that ended since then, newest first, at most so many."""
        rows = self._sql.rows(SINCE, {"after": micros(after), "most": most})
        return [Transfer(moment(r[0]), r[1], r[2], Hop(r[3]), r[4], r[5] / 1_000_000) for r in rows]

    def forget(self, before: datetime) -> int:
        """Remove transfers that are too old to count; return how many."""
        return self._sql.change(FORGET, {"before": micros(before)})
