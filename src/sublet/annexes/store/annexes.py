"""Annexes: names, with an id, who owns them and who may use them."""

from __future__ import annotations

import json

from sqlalchemy import insert, select, update

from sublet.annexes.model.annex import Annex
from sublet.annexes.store.tables import annexes
from sublet.booking.model.timeline import micros, moment
from sublet.kernel.db.sql import Row, Sql, bind, plain

A = annexes.c
COLUMNS = (A.id, A.person, A.name, A.created, A.open, A.guests)
ADD = insert(annexes)
CLOSED = 2  # in `open`: to jobs, also those that name it
GET = select(*COLUMNS).where(A.id == bind("of_id"))
NAMED = select(*COLUMNS).where(A.person == bind("of_person"), A.name == bind("of_name"))
LIST = select(*COLUMNS).where(A.person == bind("of_person")).order_by(A.name)
ALL = select(*COLUMNS).order_by(A.person, A.name)
SET = update(annexes).where(A.id == bind("of_id")).values(name=bind("n"), open=bind("o"), guests=bind("g"))


class AnnexStore:
    """The annexes, as one transaction sees and changes them."""

    def __init__(self, sql: Sql) -> None:
        """Of this transaction."""
        self._sql = sql

    def add(self, annex: Annex) -> None:
        """A new one; its name must be free."""
        self._sql.change(
            ADD,
            {
                "id": annex.id,
                "person": plain(annex.person),
                "name": annex.name,
                "created": micros(annex.created),
                "open": _openness(annex),
                "guests": json.dumps(annex.guests),
            },
        )

    def get(self, id: str) -> Annex | None:
        """By its id."""
        return _annex(self._sql.row(GET, {"of_id": plain(id)}))

    def find_named(self, person: str, name: str) -> Annex | None:
        """A person's, by its name."""
        return _annex(self._sql.row(NAMED, {"of_person": plain(person), "of_name": plain(name)}))

    def list(self, person: str | None = None) -> list[Annex]:
        """A person's, or all, by name."""
        rows = self._sql.rows(ALL, {}) if person is None else self._sql.rows(LIST, {"of_person": plain(person)})
        return [annex for annex in map(_annex, rows) if annex]

    def change(self, annex: Annex) -> None:
        """Its name, whether it is open, and its guests."""
        guests = json.dumps(annex.guests)
        self._sql.change(SET, {"of_id": annex.id, "n": annex.name, "o": _openness(annex), "g": guests})


def _openness(annex: Annex) -> int:
    return CLOSED if annex.sessions else int(annex.open)


def _annex(row: Row | None) -> Annex | None:
    if row is None:
        return None
    return Annex(row[0], row[1], row[2], moment(row[3]), row[4] == 1, tuple(json.loads(row[5])), row[4] == CLOSED)
