"""Copies of a database while it is in use: SQLite's with its backup API, PostgreSQL's with pg_dump."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from sublet.kernel.db.engine import address_of, postgres_options
from sublet.kernel.db.moves import Moves
from sublet.kernel.db.record import EVENTS, SQLITE, sqlite_file

DATABASE = "database"  # the copy's name in a backup
SESSIONS = "SELECT count(*) FROM sessions"
SIDES = ("", "-wal", "-shm", "-journal")
DUMPED_ROWS = re.compile(r"COPY (?:\w+\.)?(\w+) \(.*\) FROM stdin;")  # until a line with END_OF_ROWS
END_OF_ROWS = "\\."
DUMPED_SEQUENCE = re.compile(r"SELECT pg_catalog\.setval\('(?:\w+\.)?events_id_seq', (\d+), (true|false)\);")


class CopyFailed(Exception):
    """A database could not be copied or restored; nothing was changed."""

    def __init__(self, why: str, hint: str = "") -> None:
        """Say why and, if something helps, what to do."""
        super().__init__(why)
        self.why, self.hint = why, hint


class DatabaseCounts(NamedTuple):
    """How much a copy of a database has."""

    events: int  # ever recorded
    sessions: int


class DatabaseCopy(Protocol):
    """How one kind of database is copied and restored; its methods raise CopyFailed."""

    @property
    def kind(self) -> str:
        """`sqlite` or `postgresql`."""

    @property
    def address(self) -> str:
        """The database's address, without a password."""

    def is_used(self) -> bool:
        """Whether the database exists and has content."""

    def save(self, to: Path) -> None:
        """Write a consistent copy of the database."""

    def count(self, copy: Path) -> DatabaseCounts:
        """Return how many events and sessions a copy has."""

    def check(self, copy: Path) -> None:
        """Raise CopyFailed unless a copy is intact."""

    def load(self, copy: Path, aside: Path, moves: Moves) -> None:
        """Replace the database by a copy; the replaced one is kept in the directory `aside`.

        If it fails, undoing `moves` leaves everything as it was.
        """


def copy_of(url: str) -> DatabaseCopy:
    """Return the DatabaseCopy for the database at this address."""
    file = sqlite_file(url)
    return SqliteCopy(file) if file is not None else PostgresCopy(url)


def save_sqlite(source: str, to: Path) -> None:
    """Copy a SQLite database consistently, including its write-ahead log, while others may write to it."""
    os.close(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(sqlite3.connect(source, timeout=30)) as reading, closing(sqlite3.connect(to)) as writing:
        reading.execute("PRAGMA query_only = ON")
        reading.backup(writing)
        writing.execute("PRAGMA journal_mode = DELETE")  # so that the copy is a single file


@dataclass(frozen=True)
class SqliteCopy:
    """Copies of a SQLite database."""

    file: str
    kind: str = "sqlite"

    @property
    def address(self) -> str:
        """The database's address, as in the settings."""
        return f"{SQLITE}{self.file}"

    def is_used(self) -> bool:
        """Whether the database's file exists."""
        return os.path.exists(self.file)

    def save(self, to: Path) -> None:
        """Write a copy with SQLite's backup API."""
        if not os.path.exists(self.file):
            raise CopyFailed(f"there is no database {self.file}", "Set SUBLET_HOME, or --config, to the service's.")
        try:
            save_sqlite(self.file, to)
        except sqlite3.Error as error:
            raise CopyFailed(f"{self.file}: {error}") from error
        if wrong := _integrity(to):
            raise CopyFailed(f"{self.file} is damaged: {wrong}", "`sublet doctor` says what to do.")

    def count(self, copy: Path) -> DatabaseCounts:
        """Count the events and sessions in a copy."""
        try:
            with closing(sqlite3.connect(copy)) as connection:
                events, sessions = (connection.execute(query).fetchone() for query in (EVENTS, SESSIONS))
        except sqlite3.Error as error:
            raise CopyFailed(f"it is not a database of Sublet: {error}", "Take another file.") from error
        return DatabaseCounts(events[0] if events else 0, sessions[0])

    def check(self, copy: Path) -> None:
        """Raise CopyFailed if SQLite's integrity check of the copy fails."""
        if wrong := _integrity(copy):
            raise CopyFailed(f"the database in it is damaged: {wrong}", "Take another backup.")

    def load(self, copy: Path, aside: Path, moves: Moves) -> None:
        """Move a copy into place, after moving the old file and its write-ahead log aside."""
        Path(self.file).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = Path(f"{self.file}.restored")
        try:
            shutil.copyfile(copy, part)
            os.chmod(part, 0o600)
            for side in SIDES:
                if os.path.exists(self.file + side):
                    moves.move(Path(self.file + side), aside / Path(self.file + side).name)
            os.rename(part, self.file)
        finally:
            if part.is_file():
                part.unlink()


@dataclass(frozen=True)
class PostgresCopy:
    """Copies of a PostgreSQL database, made by PostgreSQL's own programs."""

    url: str
    kind: str = "postgresql"

    @property
    def address(self) -> str:
        """The database's address, without the password."""
        return address_of(self.url)

    def is_used(self) -> bool:
        """Whether the database has tables."""
        query = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        return self._run("psql", "-X", "-A", "-t", "-c", query).strip() != "0"

    def save(self, to: Path) -> None:
        """Write a dump of one snapshot with pg_dump."""
        self._run("pg_dump", "--format=custom", "--no-owner", f"--file={to}")
        os.chmod(to, 0o600)

    def count(self, copy: Path) -> DatabaseCounts:
        """Count the events and sessions in a dump."""
        tables = ("--table=events_id_seq", "--table=sessions")
        argv = [_program("pg_restore"), "--data-only", *tables, "--file=-", str(copy)]
        with (
            tempfile.TemporaryFile("w+") as wrong,
            subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=wrong, text=True) as reading,
        ):
            counts = read_dump(reading.stdout or ())
            if reading.wait():
                wrong.seek(0)
                raise CopyFailed(f"pg_restore: {_last(wrong.read())}")
        return counts

    def check(self, copy: Path) -> None:
        """Raise CopyFailed unless pg_restore can list the dump."""
        done = subprocess.run([_program("pg_restore"), "--list", str(copy)], capture_output=True, text=True)
        if done.returncode:
            raise CopyFailed(f"the database in it is damaged: {_last(done.stderr)}", "Take another backup.")

    def load(self, copy: Path, aside: Path, moves: Moves) -> None:
        """Restore a dump with pg_restore, in one transaction; the previous content is dumped to `aside` first."""
        if self.is_used():
            self.save(aside / DATABASE)
        words = ("--clean", "--if-exists", "--no-owner", "--single-transaction", "--exit-on-error", str(copy))
        self._run("pg_restore", *words)

    def _run(self, program: str, *words: str) -> str:
        options = postgres_options(self.url)
        password = options.pop("password", "")  # never in a command's arguments
        environment = {**os.environ, **({"PGPASSWORD": password} if password else {})}
        argv = [_program(program), f"--dbname={connection_string(options)}", *words]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise CopyFailed(f"{program}: {_last(done.stderr)}")
        return done.stdout


def connection_string(options: Mapping[str, str]) -> str:
    """Return libpq's options as one string, quoted: a URL without a host isn't read alike by all that make URLs."""
    values = {name: value.replace("\\", "\\\\").replace("'", "\\'") for name, value in options.items()}
    return " ".join(f"{name}='{value}'" for name, value in values.items())


def read_dump(lines: Iterable[str]) -> DatabaseCounts:
    """Return how many events ever and sessions a PostgreSQL dump has, from its rows and sequences as text."""
    events, sessions, table = 0, 0, ""
    for line in lines:
        text = line.rstrip("\n")
        if table:
            table = "" if text == END_OF_ROWS else table
            sessions += table == "sessions"
        elif rows := DUMPED_ROWS.fullmatch(text):
            table = rows[1]
        elif sequence := DUMPED_SEQUENCE.fullmatch(text):
            events = int(sequence[1]) if sequence[2] == "true" else 0
    return DatabaseCounts(events, sessions)


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise CopyFailed(f"{name} is not installed", "Install PostgreSQL's client programs: postgresql-client")
    return path


def _integrity(file: Path) -> str:
    try:
        with closing(sqlite3.connect(file)) as connection:
            verdict = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except sqlite3.Error as error:
        return str(error)
    return "" if verdict == "ok" else verdict


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["it failed"])[-1]
