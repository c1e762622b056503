"""What is held for offers that nobody has accepted yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from sublet.core.session import Phase, Session
from sublet.core.timeline import moment
from sublet.store.rows import SESSION, S, read_session
from sublet.store.sql import Row, Sql, given, plain
from sublet.store.tables.sessions import offersets

_open = S.phase == Phase.OFFERED.value
_sets = (
    select(S.offerset, S.person, func.count(), func.max(S.expires), offersets.c.firm)
    .join(offersets, offersets.c.id == S.offerset)
    .where(_open)
    .group_by(S.offerset, S.person, offersets.c.firm)
    .order_by(func.max(S.created).desc(), S.offerset)
)
ON_PLATFORM = _sets.where(S.platform == given("on_platform")).limit(given("most"))
OF_PERSON = _sets.where(S.person == given("of_person"))
OLDEST_OF_PERSON = (
    OF_PERSON.where(S.platform == given("on_platform"))
    .order_by(None)
    .order_by(func.max(S.created), S.offerset.desc())
    .limit(given("most"))
)
OFFERS = SESSION.where(_open, S.offerset == given("of_set")).order_by(S.created, S.id)


@dataclass(frozen=True, slots=True)
class Hold:
    """The open offers of one offer set: its id is the key of what is held for them."""

    offerset: str
    person: str
    offers: int  # that can still be accepted
    expires: datetime
    firm: bool = False  # they don't give way to a later request


class Holds:
    """The open offers, as one transaction sees them."""

    def __init__(self, sql: Sql) -> None:
        """Of this transaction."""
        self._sql = sql

    def on(self, platform: str, limit: int) -> list[Hold]:
        """Everybody's on a platform, the newest first."""
        rows = self._sql.rows(ON_PLATFORM, {"on_platform": platform, "most": limit})
        return [_hold(row) for row in rows]

    def of(self, person: str) -> list[Hold]:
        """A person's, the newest first."""
        return [_hold(row) for row in self._sql.rows(OF_PERSON, {"of_person": plain(person)})]

    def find_oldest(self, person: str, platform: str, limit: int) -> list[Hold]:
        """So many of a person's on a platform, the oldest of them; the newest of those first."""
        params = {"of_person": plain(person), "on_platform": platform, "most": limit}
        return [_hold(row) for row in self._sql.rows(OLDEST_OF_PERSON, params)][::-1]

    def offers(self, offerset: str) -> list[Session]:
        """The offers of a set that can still be accepted."""
        return [read_session(row) for row in self._sql.rows(OFFERS, {"of_set": plain(offerset)})]


def _hold(row: Row) -> Hold:
    offerset, person, offers, expires, firm = row
    return Hold(offerset, person, offers, moment(expires), bool(firm))
