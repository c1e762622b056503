"""Recurring bookings: a row for each, with all its seats."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import insert, select, update

from sublet.booking.model.series import BookedSeat, Series, SeriesState
from sublet.booking.model.timeline import micros, moment
from sublet.booking.store.tables import series
from sublet.kernel.db.sql import Row, Sql, bind, dump, plain

C = series.c
SEATS = TypeAdapter(tuple[BookedSeat, ...])
ALL = select(
    *(C.id, C.person, C.name, C.every, C.seats_each, C.fit, C.document, C.created, C.expires, C.state, C.seats)
)
ADD = insert(series)
GET = ALL.where(C.id == bind("of_id"))
BY_PREFIX = ALL.where(C.id >= bind("low"), C.id < bind("high"), C.person == bind("of_person")).limit(2)
OF = ALL.where(C.person == bind("of_person")).order_by(C.created.desc(), C.id).limit(bind("most"))
SAVE = update(series).where(C.id == bind("of_id")).values(state=bind("new_state"), seats=bind("new_seats"))


class SeriesStore:
    """Recurring bookings, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Of this transaction."""
        self._sql = sql

    def add(self, new: Series) -> None:
        """Record one."""
        row: dict[str, Any] = {name: plain(getattr(new, name)) for name in ("id", "person", "name", "every", "fit")}
        row |= {"document": plain(new.document), "seats_each": new.seats_each, "state": new.state.value}
        row |= {"created": micros(new.created), "expires": micros(new.expires), "seats": dump(SEATS, new.seats)}
        self._sql.change(ADD, row)

    def save(self, changed: Series) -> None:
        """Record what became of it."""
        new = {"of_id": changed.id, "new_state": changed.state.value, "new_seats": dump(SEATS, changed.seats)}
        self._sql.change(SAVE, new)

    def get(self, id: str) -> Series | None:
        """The one of this id."""
        row = self._sql.row(GET, {"of_id": plain(id)})
        return _read(row) if row else None

    def find(self, name: str, person: str) -> list[Series]:
        """A person's own whose id begins so; two at most."""
        low = name.lower()
        if not low or not set(low) <= set("0123456789abcdef-"):
            return []
        rows = self._sql.rows(BY_PREFIX, {"low": low, "high": low + "g", "of_person": plain(person)})
        return [_read(row) for row in rows]

    def list(self, person: str, most: int = 100) -> list[Series]:
        """A person's own, the newest first."""
        return [_read(row) for row in self._sql.rows(OF, {"of_person": plain(person), "most": most})]


def _read(row: Row) -> Series:
    id, person, name, every, seats_each, fit, document, created, expires, state, seats = row
    facts = (id, person, name, every, seats_each, fit, document)
    return Series(*facts, moment(created), moment(expires), SeriesState(state), SEATS.validate_json(seats))
