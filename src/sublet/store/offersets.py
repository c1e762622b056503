"""The answers to requests."""

from __future__ import annotations

from datetime import datetime

from pydantic import TypeAdapter
from sqlalchemy import delete, insert, select

from sublet.core.offer import Reason
from sublet.core.request import Request
from sublet.core.session import OfferSet, Phase
from sublet.core.timeline import micros, moment
from sublet.store.sql import Row, Sql, dump, given, plain
from sublet.store.tables.sessions import events, offersets, sessions

COLUMNS = tuple(offersets.c)
ADD = insert(offersets)
GET = select(*COLUMNS).where(offersets.c.id == given("set_id"))
SAME = select(*COLUMNS).where(offersets.c.person == given("of_person"), offersets.c.key == given("of_key"))
_came_to_something = select(sessions.c.id).where(
    sessions.c.offerset == offersets.c.id, sessions.c.phase.not_in([Phase.REJECTED.value, Phase.EXPIRED.value])
)
IN_VAIN = (
    select(offersets.c.id)
    .where(offersets.c.created < given("before"), ~_came_to_something.exists())
    .order_by(offersets.c.created)
    .limit(given("most"))
)

REQUEST = TypeAdapter(Request)
REASONS = TypeAdapter(tuple[Reason, ...])


class OfferSets:
    """The offer sets, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Of this transaction."""
        self._sql = sql

    def add(self, new: OfferSet) -> OfferSet:
        """Record it; if the person has asked under the same key before, say what was answered then instead."""
        if new.key is not None:
            known = self.by_key(new.person, new.key)
            if known is not None:
                return known
        self._sql.change(
            ADD,
            {
                "id": new.id,
                "person": plain(new.person),
                "key": None if new.key is None else plain(new.key),
                "created": micros(new.created),
                "expires": micros(new.expires),
                "result": new.result,
                "request": dump(REQUEST, new.request),
                "document": plain(new.document),
                "content_type": plain(new.content_type),
                "reasons": dump(REASONS, new.reasons) if new.reasons else "[]",
                "firm": int(new.firm),
            },
        )
        return new

    def get(self, id: str) -> OfferSet | None:
        """The one with this id."""
        row = self._sql.row(GET, {"set_id": plain(id)})
        return None if row is None else _offerset(row)

    def by_key(self, person: str, key: str) -> OfferSet | None:
        """What a person was answered under a key of their own."""
        row = self._sql.row(SAME, {"of_person": plain(person), "of_key": plain(key)})
        return None if row is None else _offerset(row)

    def forget(self, before: datetime, limit: int = 100) -> int:
        """Remove answers older than this of which nothing was accepted, with all that belongs to them; how many."""
        ids = [row[0] for row in self._sql.rows(IN_VAIN, {"before": micros(before), "most": limit})]
        if ids:
            theirs = select(sessions.c.id).where(sessions.c.offerset.in_(ids))
            self._sql.modify(delete(events).where(events.c.session.in_(theirs) | events.c.session.in_(ids)))
            self._sql.modify(delete(sessions).where(sessions.c.offerset.in_(ids)))
            self._sql.modify(delete(offersets).where(offersets.c.id.in_(ids)))
        return len(ids)


def _offerset(row: Row) -> OfferSet:
    id_, person, key, created, expires, result, request, document, content_type, reasons, firm = row
    return OfferSet(
        id=id_,
        person=person,
        created=moment(created),
        expires=moment(expires),
        result=result,
        request=REQUEST.validate_json(request),
        document=document,
        content_type=content_type,
        reasons=REASONS.validate_json(reasons),
        key=key,
        firm=bool(firm),
    )
