"""Pledges that operators added besides those of the settings; they survive restarts, and every process sees them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, func, insert, select

from sublet.booking.model.pledged import AddedPledge
from sublet.booking.model.timeline import micros
from sublet.booking.store.tables import pledges
from sublet.kernel.db.sql import Row, Sql, bind, plain

P = pledges.c
ADD = insert(pledges)
LIST = select(P.platform, P.name, P.settings, P.by).order_by(P.platform, P.name)
CALLED = LIST.where(P.name == bind("of_name"))
REMOVE = delete(pledges).where(P.platform == bind("of_platform"), P.name == bind("of_name"))
STAMP = select(func.count(), func.max(P.changed))


class PledgeStore:
    """The pledges that were added, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def put(self, pledge: AddedPledge, now: datetime) -> None:
        """Record a pledge, in place of an earlier one of its name."""
        self.remove(pledge.platform, pledge.name)
        row = {"platform": plain(pledge.platform), "name": plain(pledge.name), "by": plain(pledge.by)}
        self._sql.change(ADD, {**row, "settings": plain(json.dumps(dict(pledge.settings))), "changed": micros(now)})

    def list(self) -> Sequence[AddedPledge]:
        """List all added pledges, by platform and name."""
        return [_pledge(row) for row in self._sql.rows(LIST, {})]

    def list_by_name(self, name: str) -> Sequence[AddedPledge]:
        """List the added pledges of this name, on any platform."""
        return [_pledge(row) for row in self._sql.rows(CALLED, {"of_name": plain(name)})]

    def remove(self, platform: str, name: str) -> bool:
        """Remove a pledge; return whether it was there."""
        return self._sql.change(REMOVE, {"of_platform": plain(platform), "of_name": plain(name)}) > 0

    def stamp(self) -> tuple[int, int]:
        """Return a stamp that changes when a pledge is added, changed or removed."""
        row = self._sql.row(STAMP, {}) or (0, 0)
        return int(row[0]), int(row[1] or 0)


def _pledge(row: Row) -> AddedPledge:
    platform, name, settings, by = row
    return AddedPledge(platform, name, json.loads(settings), by)
