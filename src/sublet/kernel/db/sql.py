"""Statements on one connection: written with SQLAlchemy, compiled once, and run directly by the driver."""

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
    """Runs statements on one connection, within its current transaction."""

    def __init__(self, connection: Connection) -> None:
        """Use the connection, which remains the caller's to close."""
        self.connection = connection
        self._cursor = connection.connection.cursor()
        self._dialect = connection.dialect
        self.dialect = self._dialect.name
        self._texts = _compiled.setdefault(self.dialect, WeakKeyDictionary())
        self._recalled: dict[tuple[ClauseElement, tuple[Any, ...]], list[Row]] = {}

    def rows(self, statement: ClauseElement, params: Params) -> list[Row]:
        """Return all rows of a constant query."""
        self._run(statement, params)
        return self._cursor.fetchall()  # type: ignore[return-value]

    def row(self, statement: ClauseElement, params: Params) -> Row | None:
        """Return the first row of a constant query, or None."""
        self._run(statement, params)
        return self._cursor.fetchone()

    def recall(self, statement: Select[Any] | CompoundSelect[Any], params: Params) -> list[Row]:
        """Return all rows of a constant query, cached until one of its tables is changed in this transaction.

        For data that every unit of work of a write transaction reads and almost none changes; no other process can
        change it meanwhile.
        """
        key = (statement, tuple(params.values()))
        rows = self._recalled.get(key)
        if rows is None:
            rows = self._recalled[key] = self.rows(statement, params)
        return rows

    def forget(self) -> None:
        """Clear the cache of `recall`, when a transaction begins or a part of it is rolled back."""
        self._recalled.clear()

    def number(self, statement: ClauseElement, params: Params) -> int:
        """Return the single number that a constant query selects; 0 if there is none."""
        row = self.row(statement, params)
        return int(row[0]) if row else 0

    def change(self, statement: ClauseElement, params: Params) -> int:
        """Run a constant statement that changes rows; return how many it changed."""
        self._note_change(statement)
        self._run(statement, params)
        return self._cursor.rowcount

    def change_many(self, statement: ClauseElement, params: Sequence[Params]) -> None:
        """Run a constant statement once for each set of parameters."""
        self._note_change(statement)
        if len(params) == 1:
            self._run(statement, params[0])
        elif params:
            text, constants = self._text(statement)
            self._cursor.executemany(text, [{**constants, **row} for row in params] if constants else params)

    def select(self, statement: Executable) -> list[Row]:
        """Return all rows of a query that was built for this call."""
        return [tuple(row) for row in self.connection.execute(statement)]

    def modify(self, statement: Executable) -> int:
        """Run a statement that was built for this call; return how many rows it changed."""
        self.forget()
        return int(self.connection.execute(statement).rowcount)

    def word(self, words: str) -> None:
        """Run a transaction control statement, such as SAVEPOINT."""
        self._cursor.execute(words)

    def _note_change(self, statement: ClauseElement) -> None:
        """Clear the cache of `recall` if the statement may change one of its tables."""
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
    """Return the tables that a constant query reads."""
    return frozenset(element for element in iterate(query) if isinstance(element, Table))


def bind(name: str) -> BindParameter[Any]:
    """Return a parameter of a constant statement, whose value is given at each run; a constant NULL is `null()`."""
    return bindparam(name, required=False)


def plain(text: str) -> str:
    """Return text that both databases can store, with NUL characters and lone surrogates replaced."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def dump(adapter: TypeAdapter[Any], value: object) -> str:
    """Return a value as JSON; raise BadRequest if it can't be serialized."""
    try:
        return adapter.dump_json(value).decode()
    except PydanticSerializationError as error:
        raise BadRequest(detail=f"it holds something that can't be stored: {error}") from error


def micros_or_none(time: datetime | None) -> int | None:
    """Return an optional time as it is stored."""
    return None if time is None else micros(time)


def moment_or_none(stored: int | None) -> datetime | None:
    """Return an optional stored time as a datetime."""
    return None if stored is None else moment(stored)
