"""Offer sets: the answers to requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import TypeAdapter
from sqlalchemy import ColumnElement, and_, delete, insert, null, select, tuple_, update

from sublet.booking.model.offer import Reason
from sublet.booking.model.phases import ACTIVE, Phase
from sublet.booking.model.request import Request
from sublet.booking.model.session import OfferSet
from sublet.booking.model.timeline import micros, moment
from sublet.booking.store.older_rows import gather_request_options
from sublet.booking.store.tables import events, offersets, sessions
from sublet.kernel.db.sql import Row, Sql, bind, dump, plain

COLUMNS = tuple(offersets.c)
ADD = insert(offersets)
GET = select(*COLUMNS).where(offersets.c.id == bind("set_id"))
SAME = select(*COLUMNS).where(offersets.c.person == bind("of_person"), offersets.c.key == bind("of_key"))
RELEASE = update(offersets).where(offersets.c.id == bind("set_id")).values(key=null())
UNTAKEN = sessions.c.phase.in_([Phase.REJECTED.value, Phase.EXPIRED.value])
GOES_ON = sessions.c.phase.in_([phase.value for phase in sorted({*ACTIVE, Phase.OFFERED})])
_of_the_set = select(sessions.c.id).where(sessions.c.offerset == offersets.c.id)
_old = (
    select(
        offersets.c.id,
        offersets.c.created,
        _of_the_set.where(~UNTAKEN).exists(),
        _of_the_set.where(GOES_ON).exists(),
    )
    .where(offersets.c.created < bind("before"))
    .order_by(offersets.c.created, offersets.c.id)
    .limit(bind("most"))
)
OLDEST = _old
NEXT_OLDEST = _old.where(
    offersets.c.created >= bind("seen_created"),
    tuple_(offersets.c.created, offersets.c.id) > tuple_(bind("seen_created"), bind("seen_id")),
)
GOING_ON = select(sessions.c.offerset).where(GOES_ON).distinct()
Cursor = tuple[int, str]  # the last offer set that was looked at: its time of creation and its id

REQUEST = TypeAdapter(Request)
REASONS = TypeAdapter(tuple[Reason, ...])


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The outcome of a look at old offer sets."""

    removed: int
    looked_at: int
    seen: Cursor | None  # the last set that was looked at
    going_on: tuple[str, ...] = ()  # sets with an accepted session that is not over


class OfferSets:
    """The offer sets, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def add(self, new: OfferSet) -> OfferSet:
        """Record an offer set; if the person has asked under the same key before, return that answer instead."""
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
        """Return the offer set with this id, or None."""
        row = self._sql.row(GET, {"set_id": plain(id)})
        return None if row is None else _offerset(row)

    def by_key(self, person: str, key: str) -> OfferSet | None:
        """Return a person's offer set under a key, or None."""
        row = self._sql.row(SAME, {"of_person": plain(person), "of_key": plain(key)})
        return None if row is None else _offerset(row)

    def release_key(self, id: str) -> None:
        """Free the key of an offer set, so that it can be used for another."""
        self._sql.change(RELEASE, {"set_id": plain(id)})

    def forget(self, before: datetime, limit: int = 100, seen: Cursor | None = None) -> Forgotten:
        """Look at the oldest offer sets before a time, and remove those without an accepted offer.

        Of the others, the offers that were not accepted are removed once the accepted session is over and archived. A
        call continues after `seen`, where an earlier one ended. What belongs to an offer set is removed with it.
        """
        params: dict[str, object] = {"before": micros(before), "most": limit}
        if seen is None:
            rows = self._sql.rows(OLDEST, params)
        else:
            rows = self._sql.rows(NEXT_OLDEST, {**params, "seen_created": seen[0], "seen_id": seen[1]})
        ids = [id for id, _, accepted, _ in rows if not accepted]
        if ids:
            self._sql.modify(delete(events).where(events.c.session.in_(ids)))
            self._remove(sessions.c.offerset.in_(ids))
            self._sql.modify(delete(offersets).where(offersets.c.id.in_(ids)))
        if over := [id for id, _, accepted, goes_on in rows if accepted and not goes_on]:
            self._remove(and_(sessions.c.offerset.in_(over), UNTAKEN))
        going_on = tuple(id for id, _, accepted, goes_on in rows if accepted and goes_on)
        return Forgotten(len(ids), len(rows), (rows[-1][1], rows[-1][0]) if rows else None, going_on)

    def forget_untaken(self, ids: Sequence[str]) -> list[str]:
        """Remove the unaccepted offers of sets whose accepted session is over; return the sets where it isn't."""
        going_on = {row[0] for row in self._sql.select(GOING_ON.where(sessions.c.offerset.in_(ids)))}
        if over := [id for id in ids if id not in going_on]:
            self._remove(and_(sessions.c.offerset.in_(over), UNTAKEN))
        return [id for id in ids if id in going_on]

    def _remove(self, which: ColumnElement[bool]) -> None:
        """Remove sessions with their events."""
        self._sql.modify(delete(events).where(events.c.session.in_(select(sessions.c.id).where(which))))
        self._sql.modify(delete(sessions).where(which))


def _offerset(row: Row) -> OfferSet:
    id_, person, key, created, expires, result, request, document, content_type, reasons, firm = row
    return OfferSet(
        id=id_,
        person=person,
        created=moment(created),
        expires=moment(expires),
        result=result,
        request=REQUEST.validate_json(gather_request_options(request)),
        document=document,
        content_type=content_type,
        reasons=REASONS.validate_json(reasons),
        key=key,
        firm=bool(firm),
    )
