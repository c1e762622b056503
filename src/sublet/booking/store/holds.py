"""What is held for offers that nobody has accepted yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from sublet.booking.model.session import Session
from sublet.booking.model.timeline import moment
from sublet.booking.store.rows import SESSION, S, read_session
from sublet.booking.store.tables import OFFERED, offersets
from sublet.kernel.db.sql import Row, Sql, bind, plain

_sets = (
    select(S.offerset, S.person, func.count(), func.max(S.expires), offersets.c.firm)
    .join(offersets, offersets.c.id == S.offerset)
    .where(OFFERED)
    .group_by(S.offerset, S.person, offersets.c.firm)
    .order_by(func.max(S.created).desc(), S.offerset)
)
ON_PLATFORM = _sets.where(S.platform == bind("on_platform")).limit(bind("most"))
OF_PERSON = _sets.where(S.person == bind("of_person"))
_theirs_there = (OFFERED, S.person == bind("of_person"), S.platform == bind("on_platform"))
OLDEST = (  # all offers of a set were made at one moment, so that no more sets than wanted are read
    select(S.created, S.offerset).where(*_theirs_there).distinct().order_by(S.created, S.offerset).limit(bind("most"))
)
NO_NEWER = _sets.where(*_theirs_there, S.created <= bind("last"))
FEW = select(S.offerset).where(OFFERED, S.platform == bind("on_platform")).distinct().limit(bind("most"))
OFFERS = SESSION.where(OFFERED, S.offerset == bind("of_set")).order_by(S.created, S.id)


@dataclass(frozen=True, slots=True)
class Hold:
    """The open offers of one offer set, whose id is the key of what is held for them."""

    offerset: str
    person: str
    offers: int  # how many can still be accepted
    expires: datetime
    firm: bool = False  # they don't give way to a later request


class Holds:
    """The open offers, as one transaction sees them."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def on(self, platform: str, limit: int) -> list[Hold]:
        """List everyone's holds on a platform, newest first."""
        rows = self._sql.rows(ON_PLATFORM, {"on_platform": platform, "most": limit})
        return [_hold(row) for row in rows]

    def are_fewer(self, platform: str, count: int) -> bool:
        """Whether a platform has fewer holds than this; no more are read."""
        return len(self._sql.rows(FEW, {"on_platform": platform, "most": count})) < count

    def of(self, person: str) -> list[Hold]:
        """List a person's holds, newest first."""
        return [_hold(row) for row in self._sql.rows(OF_PERSON, {"of_person": plain(person)})]

    def find_oldest(self, person: str, platform: str, limit: int) -> list[Hold]:
        """Return a person's oldest holds on a platform, up to a limit; the newest of those first."""
        theirs = {"of_person": plain(person), "on_platform": platform}
        oldest = self._sql.rows(OLDEST, {**theirs, "most": limit})
        if not oldest:
            return []
        return [_hold(row) for row in self._sql.rows(NO_NEWER, {**theirs, "last": oldest[-1][0]})][-limit:]

    def offers(self, offerset: str) -> list[Session]:
        """Return the offers of a set that can still be accepted."""
        return [read_session(row) for row in self._sql.rows(OFFERS, {"of_set": plain(offerset)})]


def _hold(row: Row) -> Hold:
    offerset, person, offers, expires, firm = row
    return Hold(offerset, person, offers, moment(expires), bool(firm))
