"""Recurring bookings: a row for each, with all its seats."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
    *(
        C.id,
        C.person,
        C.name,
        C.every,
        C.seats_each,
        C.fit,
        C.document,
        C.created,
        C.expires,
        C.state,
        C.seats,
        C.for_group,
    )
)
ADD = insert(series)
MOST_OF_ONE = 1000  # bookings of one person
GET = ALL.where(C.id == bind("of_id"))
BY_PREFIX = ALL.where(C.id >= bind("low"), C.id < bind("high"), C.person == bind("of_person")).limit(2)
OF = ALL.where(C.person == bind("of_person")).order_by(C.created.desc(), C.id).limit(bind("most"))
SHARED = ALL.where(C.state == SeriesState.BOOKED.value).order_by(C.created.desc(), C.id)
SAVE = update(series).where(C.id == bind("of_id")).values(state=bind("new_state"), seats=bind("new_seats"))


class SeriesStore:
    """Recurring bookings, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Use this transaction."""
        self._sql = sql

    def add(self, new: Series) -> None:
        """Record a new booking."""
        row: dict[str, Any] = {name: plain(getattr(new, name)) for name in ("id", "person", "name", "every", "fit")}
        row |= {"document": plain(new.document), "seats_each": new.seats_each, "state": new.state.value}
        row |= {"created": micros(new.created), "expires": micros(new.expires), "seats": dump(SEATS, new.seats)}
        self._sql.change(ADD, row | {"for_group": plain(new.group)})

    def save(self, changed: Series) -> None:
        """Save the state and seats of a booking."""
        new = {"of_id": changed.id, "new_state": changed.state.value, "new_seats": dump(SEATS, changed.seats)}
        self._sql.change(SAVE, new)

    def get(self, id: str) -> Series | None:
        """Return the booking with this id, or None."""
        row = self._sql.row(GET, {"of_id": plain(id)})
        return _read(row) if row else None

    def find(self, name: str, person: str) -> list[Series]:
        """Find a person's bookings by the beginning of their id; two at most."""
        low = name.lower()
        if not low or not set(low) <= set("0123456789abcdef-"):
            return []
        rows = self._sql.rows(BY_PREFIX, {"low": low, "high": low + "g", "of_person": plain(person)})
        return [_read(row) for row in rows]

    def list(self, person: str, most: int = 100) -> list[Series]:
        """List a person's bookings, newest first."""
        return [_read(row) for row in self._sql.rows(OF, {"of_person": plain(person), "most": most})]

    def list_shared(self, groups: Collection[str], most: int = 100) -> Sequence[Series]:
        """List the accepted bookings whose seats members of these groups may take, newest first."""
        if not groups:
            return []
        shared = SHARED.where(C.for_group.in_(sorted(groups))).limit(most)
        return [_read(row) for row in self._sql.select(shared)]

    def note_taker(self, giver: str, session: str, taker: str) -> None:
        """Record the new owner of a session in the giver's booking, if it is a seat of one."""
        for known in self.list(giver, MOST_OF_ONE):
            if any(seat.offer == session for seat in known.seats):
                self.save(known.give_to(session, taker))


def _read(row: Row) -> Series:
    id, person, name, every, seats_each, fit, document, created, expires, state, seats, group = row
    facts = (id, person, name, every, seats_each, fit, document)
    return Series(*facts, moment(created), moment(expires), SeriesState(state), SEATS.validate_json(seats), group)
