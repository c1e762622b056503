"""SQL on a local copy of the archive, by DuckDB if it is installed, otherwise by SQLite.

The service sends only records that the person may see, so no statement can reach anything else; and the copy is
read-only, so nothing in it is changed by mistake.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_type_hints

from sublet.archive.views.archive import SessionRecordView
from sublet.kernel.errors import BadQuery, ExtraNotInstalled

HINTS = get_type_hints(SessionRecordView)
TABLE = "sessions"
NAMES: dict[Any, str] = {
    str: "VARCHAR",
    str | None: "VARCHAR",
    int: "BIGINT",
    float: "DOUBLE",
    datetime: "TIMESTAMP",
    int | None: "BIGINT",
    float | None: "DOUBLE",
    datetime | None: "TIMESTAMP",
}
COLUMNS = {name: NAMES[hint] for name, hint in HINTS.items()}
READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})


@dataclass(frozen=True, slots=True)
class QueryAnswer:
    """The result of a query."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Any, ...]]
    engine: str


def has_duckdb() -> bool:
    """Whether DuckDB is installed."""
    return find_spec("duckdb") is not None


def run_query(statement: str, lines: Iterable[bytes]) -> QueryAnswer:
    """Run a query on records given as lines of JSON; raise BadQuery if it is invalid, or not one SELECT."""
    return _ask_duckdb(statement, lines) if has_duckdb() else _ask_sqlite(statement, lines)


def _ask_sqlite(statement: str, lines: Iterable[bytes]) -> QueryAnswer:
    with sqlite3.connect(":memory:") as copy:
        kinds = ", ".join(f'"{name}" {_sqlite_type(kind)}' for name, kind in COLUMNS.items())
        copy.execute(f"CREATE TABLE {TABLE} ({kinds})")
        marks = ", ".join("?" for _ in COLUMNS)
        copy.executemany(f"INSERT INTO {TABLE} VALUES ({marks})", _rows(lines))  # noqa: S608 - names of our own
        copy.commit()
        copy.set_authorizer(_allow_reading)
        try:
            cursor = copy.execute(statement)
            columns = tuple(column[0] for column in cursor.description or ())
            return QueryAnswer(columns, cursor.fetchall(), "SQLite")
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise BadQuery(why=str(error), engine="SQLite") from error


def _allow_reading(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY


def _sqlite_type(kind: str) -> str:
    return {"BIGINT": "INTEGER", "DOUBLE": "REAL"}.get(kind, "TEXT")


def _rows(lines: Iterable[bytes]) -> Iterator[tuple[Any, ...]]:
    for line in lines:
        facts = json.loads(line)
        yield tuple(facts.get(name) for name in COLUMNS)


def _ask_duckdb(statement: str, lines: Iterable[bytes]) -> QueryAnswer:
    import duckdb  # an extra: sublet[archive]

    with TemporaryDirectory() as folder, duckdb.connect(str(Path(folder) / "archive.duckdb")) as copy:
        _fill_duckdb(copy, lines, Path(folder))
        copy.execute("SET enable_external_access = false")
        copy.execute("SET lock_configuration = true")
        try:
            statements = copy.extract_statements(statement)
            if [each.type for each in statements] != [duckdb.StatementType.SELECT]:
                raise BadQuery(why="it is not one SELECT", engine="DuckDB")
            cursor = copy.execute(statements[0])
            columns = tuple(column[0] for column in cursor.description or ())
            return QueryAnswer(columns, cursor.fetchall(), "DuckDB")
        except duckdb.Error as error:
            raise BadQuery(why=str(error).splitlines()[0], engine="DuckDB") from error


def _fill_duckdb(copy: Any, lines: Iterable[bytes], folder: Path) -> None:
    kinds = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
    copy.execute(f"CREATE TABLE {TABLE} ({kinds})")
    file = folder / "records.jsonl"
    with file.open("wb") as out:
        out.writelines(lines)
    if file.stat().st_size:
        types = ", ".join(f"'{name}': '{kind}'" for name, kind in COLUMNS.items())
        copy.execute(
            f"INSERT INTO {TABLE} SELECT {', '.join(COLUMNS)} FROM "  # noqa: S608 - names of our own
            f"read_json(?, format='newline_delimited', columns={{{types}}})",
            [str(file)],
        )


def write_parquet(lines: Iterable[bytes], to: Path) -> None:
    """Write records as Parquet, atomically; raise ExtraNotInstalled without DuckDB."""
    if not has_duckdb():
        raise ExtraNotInstalled(what="Parquet", extra="archive")
    import duckdb

    part = to.with_name(f".{to.name}.part")
    try:
        with TemporaryDirectory() as folder, duckdb.connect(str(Path(folder) / "archive.duckdb")) as copy:
            _fill_duckdb(copy, lines, Path(folder))
            quoted = str(part).replace("'", "''")
            copy.execute(f"COPY (SELECT * FROM {TABLE}) TO '{quoted}' (FORMAT parquet)")  # noqa: S608
        part.replace(to)
    finally:
        part.unlink(missing_ok=True)
