"""How each machine's clock is set, so that a step is followed only once, also after a restart."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import insert, select, update

from sublet.booking.model.phases import OVER, Phase
from sublet.booking.model.timeline import micros, moment, span_of
from sublet.booking.store.rows import S
from sublet.booking.store.tables import WORKED_ON, clocks, sessions
from sublet.kernel.db.sql import Sql, bind

C = clocks.c
GET = select(C.offset, C.step, C.stepped).where(C.boot == bind("of_boot"))
ADD = insert(clocks)
SET = update(clocks).where(C.boot == bind("of_boot"), C.offset == bind("old")).values(offset=bind("new"))
STEP = (
    update(clocks)
    .where(C.boot == bind("of_boot"), C.offset == bind("old"))
    .values(offset=bind("new"), step=bind("by"), stepped=bind("now"))
)
CLAIMS = update(sessions).where(S.claim_token.is_not(None)).values(claim_until=S.claim_until + bind("by"))
WAKE = update(sessions).where(WORKED_ON, S.due.is_not(None)).values(due=bind("now"))
KEEP = (
    update(sessions).where(S.phase.in_(sorted(OVER)), S.due.is_not(None)).values(due=S.due + bind("by"))
)  # when their files are removed
LAPSE = (
    update(sessions)
    .where(S.phase == Phase.OFFERED.value)
    .values(expires=S.expires + bind("by"), due=S.due + bind("by"))
)


@dataclass(frozen=True, slots=True)
class ClockStep:
    """A step of a machine's clock: by how much, and when it was noticed."""

    by: timedelta
    at: datetime


class Clocks:
    """The clocks, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def follow(self, boot: str, offset: timedelta, now: datetime, *, least: timedelta) -> timedelta:
        """Record how a machine's clock is set; return its step since then, or zero if another process followed it."""
        new = span_of(offset)
        row = self._sql.row(GET, {"of_boot": boot})
        if row is None:
            self._sql.change(ADD, {"boot": boot, "offset": new, "step": 0, "stepped": None})
            return timedelta(0)
        by = timedelta(microseconds=new - row[0])
        if abs(by) < least:
            self._sql.change(SET, {"of_boot": boot, "old": row[0], "new": new})
            return timedelta(0)
        values = {"of_boot": boot, "old": row[0], "new": new, "by": span_of(by), "now": micros(now)}
        return by if self._sql.change(STEP, values) else timedelta(0)

    def offset(self, boot: str) -> timedelta | None:
        """Return how far a machine's clock is ahead of its steady one, by recorded times; None if it isn't recorded."""
        rows = self._sql.recall(GET, {"of_boot": boot})
        return timedelta(microseconds=rows[0][0]) if rows else None

    def last_step(self, boot: str) -> ClockStep | None:
        """Return the last step of a machine's clock since it booted, or None."""
        row = self._sql.row(GET, {"of_boot": boot})
        return ClockStep(timedelta(microseconds=row[1]), moment(row[2])) if row and row[2] is not None else None

    def move_claims(self, by: timedelta, now: datetime) -> None:
        """Move claims and the ends of kept files by a step, and make all work due now; offers only if it was back."""
        self._sql.change(CLAIMS, {"by": span_of(by)})
        self._sql.change(KEEP, {"by": span_of(by)})
        self._sql.change(WAKE, {"now": micros(now)})
        if by < timedelta(0):
            self._sql.change(LAPSE, {"by": span_of(by)})
