"""Drains of platforms, which survive restarts and are seen by every process."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, insert, null, or_, select, update

from sublet.booking.model.drain import Drain
from sublet.booking.model.timeline import micros, moment
from sublet.booking.store.tables import drains
from sublet.kernel.db.sql import Row, Sql, bind, micros_or_none, moment_or_none, plain

D = drains.c
COLUMNS = (D.platform, D.by, D.created, D.reason, D.until, D.ends)
ADD = insert(drains)
GET = select(*COLUMNS).where(D.platform == bind("of"))
LIST = select(*COLUMNS).order_by(D.platform)
DUE = LIST.where(or_(D.until <= bind("now"), D.ends <= bind("now")))
REMOVE = delete(drains).where(D.platform == bind("of"))
ENDED = update(drains).where(D.platform == bind("of")).values(ends=null())


class DrainStore:
    """The drains, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def put(self, drain: Drain) -> None:
        """Drain a platform, in place of an earlier drain."""
        self.remove(drain.platform)
        self._sql.change(
            ADD,
            {
                "platform": plain(drain.platform),
                "by": plain(drain.by),
                "reason": plain(drain.reason),
                "created": micros(drain.created),
                "until": micros_or_none(drain.until),
                "ends": micros_or_none(drain.ends),
            },
        )

    def get(self, platform: str, now: datetime) -> Drain | None:
        """Return the drain of a platform, if it is in force now; else None."""
        rows = self._sql.recall(GET, {"of": plain(platform)})
        return drain if rows and (drain := _drain(rows[0])).is_active(now) else None

    def active(self, now: datetime) -> dict[str, Drain]:
        """Return all drains in force now, by platform."""
        drains = (_drain(row) for row in self._sql.rows(LIST, {}))
        return {drain.platform: drain for drain in drains if drain.is_active(now)}

    def due(self, now: datetime) -> list[Drain]:
        """List the drains that are over, or whose time to cancel running sessions has come."""
        return [_drain(row) for row in self._sql.rows(DUE, {"now": micros(now)})]

    def remove(self, platform: str) -> bool:
        """Remove the drain of a platform; return whether there was one."""
        return self._sql.change(REMOVE, {"of": plain(platform)}) > 0

    def clear_ends(self, platform: str) -> None:
        """Record that the running sessions were cancelled."""
        self._sql.change(ENDED, {"of": plain(platform)})


def _drain(row: Row) -> Drain:
    platform, by, created, reason, until, ends = row
    return Drain(platform, by, moment(created), reason, moment_or_none(until), moment_or_none(ends))
