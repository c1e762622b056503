"""Sessions that are due, shared between processes by claims: a token and a lease."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import Select, func, null, or_, select, update

from sublet.booking.model.holds import hold_of
from sublet.booking.model.offer import Offer
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Session
from sublet.booking.model.timeline import micros, moment
from sublet.booking.store.bookings import Books
from sublet.booking.store.rows import SESSION, S, read_session
from sublet.booking.store.tables import sessions
from sublet.kernel.db.sql import Sql, bind

FREE = S.claim_token.is_(None)
NEXT_FREE = select(func.min(S.due)).where(FREE, S.due.is_not(None))
NEXT_CLAIMED = select(S.due, S.claim_until).where(S.claim_token.is_not(None))
CLAIM = (
    update(sessions)
    .where(S.id == bind("session_id"))
    .values(claim_owner=bind("owner"), claim_token=bind("token"), claim_until=bind("new_until"))
)
RELEASE = (
    update(sessions)
    .where(S.id == bind("session_id"), S.claim_token == bind("token"))
    .values(claim_owner=null(), claim_token=null(), claim_until=null())
)
RENEW = update(sessions).where(S.claim_token == bind("token")).values(claim_until=bind("new_until"))
OWNERS = select(S.claim_owner).where(S.claim_token.is_not(None)).distinct()
RELEASE_ALL = (
    update(sessions)
    .where(S.claim_token.is_not(None), S.claim_owner == bind("owner"))
    .values(claim_owner=null(), claim_token=null(), claim_until=null())
)
LAPSED = SESSION.where(S.phase == Phase.OFFERED.value, S.expires <= bind("now")).order_by(S.expires).limit(bind("most"))
STILL_OFFERED = SESSION.where(S.offerset == bind("of_set"), S.platform == bind("on"), S.phase == Phase.OFFERED.value)
EXPIRE = (
    update(sessions)
    .where(S.id == bind("session_id"), S.phase == Phase.OFFERED.value)
    .values(phase=Phase.EXPIRED.value, modified=bind("now"), due=null())
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A session that one process may work on, while the token holds."""

    session: Session
    token: str


class Claims:
    """Due sessions, as one transaction sees and claims them."""

    def __init__(self, sql: Sql, books: Books) -> None:
        """Use this transaction."""
        self._sql = sql
        self._books = books

    def next_due(self) -> datetime | None:
        """Return when the next session is due and not claimed, or None."""
        row = self._sql.row(NEXT_FREE, {})
        times = [row[0]] if row and row[0] is not None else []
        times += [max(due, until) for due, until in self._sql.rows(NEXT_CLAIMED, {}) if due is not None]
        return moment(min(times)) if times else None

    def claim(
        self, now: datetime, owner: str, lease: timedelta, limit: int, platforms: Sequence[str]
    ) -> Sequence[Claim]:
        """Claim due sessions of these platforms for the lease time, the longest overdue first."""
        rows = self._sql.rows(_claimable(tuple(platforms)), {"now": micros(now), "most": limit})
        token, until = uuid.uuid4().hex, micros(now + lease)
        claim = {"owner": owner, "token": token, "new_until": until}
        self._sql.change_many(CLAIM, [{"session_id": row[0], **claim} for row in rows])
        return [Claim(read_session(row), token) for row in rows]

    def renew_claim(self, token: str, until: datetime) -> int:
        """Renew all claims with this token, and count them."""
        return self._sql.change(RENEW, {"token": token, "new_until": micros(until)})

    def release_claim(self, id: str, token: str) -> bool:
        """Release a claim; return whether it still held."""
        return self._sql.change(RELEASE, {"session_id": id, "token": token}) > 0

    def owners(self) -> Sequence[str]:
        """List the owners of claims."""
        return [owner for (owner,) in self._sql.rows(OWNERS, {})]

    def release_all(self, owner: str) -> int:
        """Release all claims of one owner, and count them."""
        return self._sql.change(RELEASE_ALL, {"owner": owner})

    def expire(self, now: datetime, limit: int = 100) -> Sequence[Session]:
        """Expire offers that nobody accepted in time, release what was held for them, and return them."""
        lapsed = [read_session(row) for row in self._sql.rows(LAPSED, {"now": micros(now), "most": limit})]
        if not lapsed:
            return []
        self._sql.change_many(EXPIRE, [{"session_id": session.id, "now": micros(now)} for session in lapsed])
        booked = [session for session in lapsed if session.offer.is_in_calendar]
        held = {(session.offerset, session.offer.platform) for session in booked}
        for offerset, platform in sorted(held):
            self._books.release(platform, offerset)
            if left := self._list_offered(offerset, platform):
                self._books.keep(platform, offerset, hold_of(left))
        return [replace(session, phase=Phase.EXPIRED, modified=now) for session in lapsed]

    def _list_offered(self, offerset: str, platform: str) -> list[Offer]:
        """Return the offers of an offer set that are still open on a platform."""
        values = {"of_set": offerset, "on": platform}
        return [read_session(row).offer for row in self._sql.rows(STILL_OFFERED, values)]


@lru_cache(maxsize=16)
def _claimable(platforms: tuple[str, ...]) -> Select[Any]:
    """Return the query for due, unclaimed sessions; cached, because platforms seldom change.

    Offers that have yet to expire are not work for the loop.
    """
    free, accepted = or_(FREE, S.claim_until <= bind("now")), S.phase != Phase.OFFERED.value
    due = SESSION.where(S.due <= bind("now"), accepted, S.platform.in_(platforms), free)
    return due.order_by(S.due).limit(bind("most"))
