"""Statements on one connection: written once with SQLAlchemy, compiled once, run by the driver itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError
from sqlalchemy import BindParameter, CompoundSelect, Connection, Executable, Select, Table, bindparam
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.sql.visitors import iterate

from sublet.booking.model.timeline import micros, moment
from sublet.kernel.errors import BadRequest

Params = Mapping[str, Any]
Row = tuple[Any, ...]

# SQLAlchemy's own execution costs several times the statement itself on SQLite, and the ask path has to keep up
# with the disk. So constant statements are compiled once per dialect and given to the driver's cursor.
_compiled: dict[str, WeakKeyDictionary[ClauseElement, tuple[str, dict[str, Any]]]] = {}


class Sql:
    """Runs statements on one connection, inside whatever transaction it is in."""

    def __init__(self, connection: Connection) -> None:
        """The connection stays the caller's."""
        self.connection = connection
        self._cursor = connection.connection.cursor()
        self._dialect = connection.dialect
        self.dialect = self._dialect.name
        self._texts = _compiled.setdefault(self.dialect, WeakKeyDictionary())
        self._recalled: dict[tuple[ClauseElement, tuple[Any, ...]], list[Row]] = {}

    def rows(self, statement: ClauseElement, params: Params) -> list[Row]:
        """All rows of a constant query."""
        self._run(statement, params)
        return self._cursor.fetchall()  # type: ignore[return-value]

    def row(self, statement: ClauseElement, params: Params) -> Row | None:
        """The first row of a constant query."""
        self._run(statement, params)
        return self._cursor.fetchone()

    def recall(self, statement: Select[Any] | CompoundSelect[Any], params: Params) -> list[Row]:
        """All rows of a constant query, read once in a transaction, until one of its tables is changed in it.

        For what every work of a transaction reads anew and almost none changes: nobody else changes it meanwhile.
        """
        key = (statement, tuple(params.values()))
        rows = self._recalled.get(key)
        if rows is None:
            rows = self._recalled[key] = self.rows(statement, params)
        return rows

    def forget(self) -> None:
        """Read all of that anew: a transaction begins, or a part of it is undone."""
        self._recalled.clear()

    def number(self, statement: ClauseElement, params: Params) -> int:
        """The one number of a constant query; 0 if there is none."""
        row = self.row(statement, params)
        return int(row[0]) if row else 0

    def change(self, statement: ClauseElement, params: Params) -> int:
        """Run a constant statement that changes rows and say how many."""
        self._note_change(statement)
        self._run(statement, params)
        return self._cursor.rowcount

    def change_many(self, statement: ClauseElement, params: Sequence[Params]) -> None:
        """Run a constant statement once for each."""
        self._note_change(statement)
        if len(params) == 1:
            self._run(statement, params[0])
        elif params:
            text, constants = self._text(statement)
            self._cursor.executemany(text, [{**constants, **row} for row in params] if constants else params)

    def select(self, statement: Executable) -> list[Row]:
        """All rows of a query that is put together when it is needed."""
        return [tuple(row) for row in self.connection.execute(statement)]

    def modify(self, statement: Executable) -> int:
        """Run a statement that is put together when it is needed, and say how many rows it changed."""
        self.forget()
        return int(self.connection.execute(statement).rowcount)

    def word(self, words: str) -> None:
        """Run one of SQL's own words on transactions."""
        self._cursor.execute(words)

    def _note_change(self, statement: ClauseElement) -> None:
        """Recall nothing that this may change."""
        table = getattr(statement, "table", None)
        if self._recalled and any(table is None or table in _tables(query) for query, _ in self._recalled):
            self.forget()

    def _run(self, statement: ClauseElement, params: Params) -> None:
        text, constants = self._text(statement)
        self._cursor.execute(text, {**constants, **params} if constants else params)

    def _text(self, statement: ClauseElement) -> tuple[str, dict[str, Any]]:
        known = self._texts.get(statement)
        if known is None:
            compiled = statement.compile(dialect=self._dialect, compile_kwargs={"render_postcompile": True})
            constants = {name: value for name, value in compiled.params.items() if value is not None}
            known = self._texts[statement] = (str(compiled), constants)
        return known


@cache
def _tables(query: ClauseElement) -> frozenset[Table]:
    """The tables that a constant query reads."""
    return frozenset(element for element in iterate(query) if isinstance(element, Table))


def bind(name: str) -> BindParameter[Any]:
    """A place in a constant statement for a value that comes when it is run; a constant NULL is `null()`."""
    return bindparam(name, required=False)


def plain(text: str) -> str:
    """A text as both databases can store it: PostgreSQL knows no NUL, and neither knows half a character."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def dump(adapter: TypeAdapter[Any], value: object) -> str:
    """A value as JSON."""
    try:
        return adapter.dump_json(value).decode()
    except PydanticSerializationError as error:
        raise BadRequest(detail=f"it holds something that can't be stored: {error}") from error


def micros_or_none(time: datetime | None) -> int | None:
    """A time that may be missing, as it is stored."""
    return None if time is None else micros(time)


def moment_or_none(stored: int | None) -> datetime | None:
    """A stored time that may be missing."""
    return None if stored is None else moment(stored)
