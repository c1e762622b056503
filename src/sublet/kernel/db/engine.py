"""One database, SQLite or PostgreSQL: its connections and their settings, and the meaning of its errors."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import structlog
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError, StatementError

from sublet.kernel.db.record import SQLITE as SQLITE_ADDRESS
from sublet.kernel.db.record import is_disk_full, sqlite_file
from sublet.kernel.errors import BadRequest, BadSettings, BrokenStore, SubletError
from sublet.kernel.safe_paths import find_danger_to

log = structlog.get_logger()
BUSY = 30  # seconds that a writer waits for another process
WRITES = 0x5375626C6574  # PostgreSQL's advisory lock that makes writes serial: "Sublet"
READERS = 4
FULL = "disk is full"  # as in SQLite's message

SQLITE = (
    "PRAGMA auto_vacuum = INCREMENTAL",  # must come first; existing databases are converted by an upgrade
    f"PRAGMA busy_timeout = {BUSY * 1000}",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",  # a booking that was acknowledged survives a power cut
    "PRAGMA foreign_keys = ON",
    "PRAGMA temp_store = MEMORY",  # savepoints copy pages, which needn't go to a file
    "PRAGMA wal_autocheckpoint = 8192",  # pages; with SQLite's 1000 a busy writer spends its time on checkpoints
)
POSTGRES = f"-c lock_timeout={BUSY}s -c idle_in_transaction_session_timeout={BUSY}s -c timezone=UTC"


class Database:
    """A connection pool for the one writer, one for the readers, and the differences between the two databases."""

    def __init__(self, url: str) -> None:
        """Parse the address; connections open on first use, but a SQLite file is created, private to its owner."""
        self.url = _parse(url)
        self.where = _address(self.url)
        self.postgres = self.url.get_backend_name() == "postgresql"
        self.discreet = False  # whether error messages may reach strangers
        self._file: tuple[int, int] | None = None  # device and inode of SQLite's file
        make = self._make_postgres if self.postgres else self._make_sqlite
        self.writing = make(1, False)
        self.reading = make(READERS + 3, True)  # plus the glance, the checker, and `read_sync`

    def begin(self, connection: Connection) -> None:
        """Begin a write transaction: no other process writes until it is committed."""
        connection.begin()
        if self.postgres:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITES})")

    def begin_reading(self, connection: Connection) -> None:
        """Begin a read transaction: it sees one snapshot, from its first query on."""
        connection.begin()
        if self.postgres:
            connection.exec_driver_sql("SELECT 1")  # fails here if the server was restarted meanwhile

    def meaning(self, error: BaseException) -> BaseException:
        """Translate an exception of the database's driver to the error that the caller should get."""
        orig = (error.orig or error) if isinstance(error, StatementError) else error
        module: Any = self.writing.dialect.dbapi
        if isinstance(error, SubletError):
            return error
        if isinstance(orig, module.DataError | UnicodeEncodeError | OverflowError):
            return BadRequest(detail="it holds a character or a number that can't be stored")
        if isinstance(error, SQLAlchemyError) or isinstance(orig, module.Error):
            return self.describe_broken(str(orig).strip() or type(orig).__name__)
        return error

    def describe_broken(self, why: str) -> BrokenStore:
        """Return the error for an unusable database; strangers see neither its address nor its user name."""
        if "I/O error" in why and self.is_disk_full():
            why = f"database or {FULL}"  # SQLite may report a full disk as an I/O error
        room = "Free some space there; the service continues as soon as it can write again." if FULL in why else ""
        if not self.discreet:
            return BrokenStore(where=self.where, why=why, hint=room)
        log.error("store.failed", where=self.where, why=why)
        short = "it is full" if FULL in why else "it does not answer as it should"
        message = f"The service can't use its database at the moment: {short}."
        return BrokenStore(message, why=short, hint="Try again later; the service's log has details for its operator.")

    def is_disk_full(self) -> bool:
        """Whether the disk of a SQLite database is full."""
        return not self.postgres and is_disk_full(self.url.database or "")

    def check_room(self) -> None:
        """Raise BrokenStore if the disk has no room for the next write."""
        if self.is_disk_full():
            raise self.describe_broken(f"database or {FULL}")

    def check_file(self) -> None:
        """Raise BrokenStore if the open file was removed or replaced, since new writes would be lost."""
        if self._file is None:
            return
        try:
            there = os.stat(self.url.database or "")
        except OSError as error:
            raise self.describe_broken(f"its file is gone: {error.strerror}") from error
        if (there.st_dev, there.st_ino) != self._file:
            raise self.describe_broken("its file has been replaced while it was open")

    def close(self) -> None:
        """Close all connections."""
        self.writing.dispose()
        self.reading.dispose()

    def _make_sqlite(self, size: int, read_only: bool) -> Engine:
        assert self.url.database is not None  # noqa: S101 - checked by _parse
        path = Path(self.url.database)
        if danger := find_danger_to(str(path)):  # what is in it starts programs
            raise self.describe_broken(f"it is not safe to use: {danger}")
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            opened = os.fstat(file)
            self._file = opened.st_dev, opened.st_ino
            os.close(file)
        except OSError as error:
            raise self.describe_broken(error.strerror or str(error)) from error
        engine = create_engine(
            self.url,
            paramstyle="named",
            pool_size=size,
            max_overflow=0,
            connect_args={"check_same_thread": False, "isolation_level": None, "cached_statements": 256},
        )
        pragmas = (*SQLITE, "PRAGMA query_only = ON" if read_only else "PRAGMA cache_size = -16384")

        def settle(connection: sqlite3.Connection, record: object) -> None:
            for pragma in pragmas:
                connection.execute(pragma)

        event.listen(engine, "connect", settle)
        event.listen(engine, "begin", _begin_deferred if read_only else _begin_immediate)
        return engine

    def _make_postgres(self, size: int, read_only: bool) -> Engine:
        options = f"{POSTGRES} -c default_transaction_read_only=on" if read_only else POSTGRES
        try:
            return create_engine(
                self.url,
                pool_size=size,
                max_overflow=0,
                pool_pre_ping=read_only,
                isolation_level="REPEATABLE READ" if read_only else "READ COMMITTED",
                connect_args={"options": options, "connect_timeout": BUSY},
            )
        except ModuleNotFoundError as error:
            raise BrokenStore(
                where=self.where, why="the PostgreSQL driver is not installed", hint='pip install "sublet[postgres]"'
            ) from error


# Through the driver's cursor: every transaction begins so, and SQLAlchemy takes many times as long.


def _begin_immediate(connection: Connection) -> None:
    connection.connection.cursor().execute("BEGIN IMMEDIATE")


def _begin_deferred(connection: Connection) -> None:
    connection.connection.cursor().execute("BEGIN")


def address_of(url: str) -> str:
    """Return a database's address for display, without a password."""
    return _address(_parse(url))


def postgres_options(url: str) -> dict[str, str]:
    """Return what the address means to libpq (`host`, `dbname`, `password`, …), as the service itself connects."""
    parsed = _parse(url)
    _, options = parsed.get_dialect()().create_connect_args(parsed)
    return {name: str(value) for name, value in options.items()}


def _address(url: URL) -> str:
    if url.get_backend_name() == "sqlite":
        return f"{SQLITE_ADDRESS}{url.database}"
    plain = url.difference_update_query(["password"])
    return plain.set(drivername=url.get_backend_name()).render_as_string(hide_password=True)


def _parse(text: str) -> URL:
    """Parse an address; the path of a SQLite file stands in it as it is, whatever characters it has."""
    file = sqlite_file(text)
    try:
        url = URL.create("sqlite", database=file) if file is not None else make_url(text)
    except ArgumentError as error:
        raise _bad(f"{text} is not a database's address") from error
    backend = url.get_backend_name()
    if backend == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise _bad(f"{backend} is not a database that Sublet knows")
    if not url.database or url.database == ":memory:":
        raise _bad("a SQLite database must be a file, because several connections share it")
    return url.set(drivername="sqlite+pysqlite")


def _bad(detail: str) -> BadSettings:
    hint = "Write sqlite:////absolute/path/sublet.db or postgresql://user@host/name."
    return BadSettings(file="database", detail=detail, hint=hint)
