"""How plans of shared queues came true: for each job that started, when it was planned to, and when it did."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import delete, insert, select

from sublet.booking.model.estimate import Sample
from sublet.booking.model.timeline import micros, moment
from sublet.booking.store.tables import starts
from sublet.kernel.db.sql import Sql, bind

ADD = insert(starts)
KNOWN = select(starts.c.session).where(starts.c.session == bind("of_session"))
SINCE = (
    select(starts.c.queue, starts.c.nodes, starts.c.cores, starts.c.planned, starts.c.actual, starts.c.at)
    .where(starts.c.platform == bind("on_platform"), starts.c.site == bind("at_site"), starts.c.at >= bind("after"))
    .order_by(starts.c.at)
)
FORGET = delete(starts).where(starts.c.at < bind("before"))


class Starts:
    """The starts, as one transaction sees and adds to them."""

    def __init__(self, sql: Sql) -> None:
        """Of this transaction."""
        self._sql = sql

    def add(self, session: str, platform: str, sample: Sample, site: str = "") -> None:
        """Record one; a session's start counts once, for where the platform is."""
        if self._sql.row(KNOWN, {"of_session": session}) is None:
            row = {"session": session, "platform": platform, "site": site, "queue": sample.queue, "nodes": sample.nodes}
            row |= {"cores": sample.cores, "planned": micros(sample.planned), "actual": micros(sample.actual)}
            self._sql.change(ADD, row | {"at": micros(sample.at)})

    def since(self, platform: str, after: datetime, site: str = "") -> list[Sample]:
        """Those of a platform, while it was there, whose plan was made after this, oldest first."""
        rows = self._sql.rows(SINCE, {"on_platform": platform, "at_site": site, "after": micros(after)})
        return [Sample(r[0], r[1], r[2], moment(r[3]), moment(r[4]), moment(r[5])) for r in rows]

    def forget(self, before: datetime) -> int:
        """Remove what is too old to count; how many."""
        return self._sql.change(FORGET, {"before": micros(before)})
