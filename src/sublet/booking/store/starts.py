"""How predicted starts of shared queues came true: the planned and the actual start of each job."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import delete, insert, select

from sublet.booking.model.estimate import MOST, Sample
from sublet.booking.model.timeline import micros, moment, span_of
from sublet.booking.store.tables import starts
from sublet.kernel.db.sql import Row, Sql, bind

ADD = insert(starts)
KNOWN = select(starts.c.session).where(starts.c.session == bind("of_session"))
SINCE = (
    select(
        *(starts.c[name] for name in ("queue", "nodes", "cores", "planned", "actual", "at", "length")),
    )
    .where(starts.c.platform == bind("on_platform"), starts.c.site == bind("at_site"), starts.c.at >= bind("after"))
    .order_by(starts.c.at.desc(), starts.c.session)
    .limit(MOST)
)
FORGET = delete(starts).where(starts.c.at < bind("before"))


class Starts:
    """The starts, as one transaction sees and adds to them."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def add(self, session: str, platform: str, sample: Sample, site: str = "") -> None:
        """Record a start, once for each session, at the platform's site."""
        if self._sql.row(KNOWN, {"of_session": session}) is None:
            row = {"session": session, "platform": platform, "site": site, "queue": sample.queue, "nodes": sample.nodes}
            row |= {"cores": sample.cores, "planned": micros(sample.planned), "actual": micros(sample.actual)}
            self._sql.change(ADD, row | {"at": micros(sample.at), "length": span_of(sample.length)})

    def since(self, platform: str, after: datetime, site: str = "") -> list[Sample]:
        """Return the newest samples of a platform at a site, planned after this time; oldest first."""
        rows = self._sql.rows(SINCE, {"on_platform": platform, "at_site": site, "after": micros(after)})
        return [_read(row) for row in reversed(rows)]

    def forget(self, before: datetime) -> int:
        """Remove samples that are too old to count, and return how many."""
        return self._sql.change(FORGET, {"before": micros(before)})


def _read(row: Row) -> Sample:
    queue, nodes, cores, planned, actual, at, length = row
    return Sample(queue, nodes, cores, moment(planned), moment(actual), moment(at), timedelta(microseconds=length))
