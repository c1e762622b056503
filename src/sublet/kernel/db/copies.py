"""Copies of a database while it is in use: SQLite's with its backup API, PostgreSQL's with pg_dump."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit, urlunsplit

from sublet.kernel.db.record import EVENTS, SQLITE, sqlite_file
from sublet.kernel.errors import NotBackedUp, NotRestored

DATABASE = "database"  # the copy's name in a backup
SESSIONS = "SELECT count(*) FROM sessions"
SIDES = ("", "-wal", "-shm", "-journal")


class DatabaseCopy(Protocol):
    """How one kind of database is copied and restored."""

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

    def look_at(self, copy: Path) -> dict[str, Any]:
        """Return the numbers for a manifest: sessions and, if known, events."""

    def check(self, copy: Path, file: Path) -> None:
        """Raise NotRestored unless a copy is intact."""

    def load(self, copy: Path, aside: Path) -> None:
        """Replace the database by a copy; the replaced one is kept in the directory `aside`."""


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
            raise NotBackedUp(
                why=f"there is no database {self.file}", hint="Set SUBLET_HOME, or --config, to the service's."
            )
        try:
            save_sqlite(self.file, to)
        except sqlite3.Error as error:
            raise NotBackedUp(why=f"{self.file}: {error}") from error
        if wrong := _integrity(to):
            raise NotBackedUp(why=f"{self.file} is damaged: {wrong}", hint="`sublet doctor` says what to do.")

    def look_at(self, copy: Path) -> dict[str, Any]:
        """Return how many events and sessions the copy has."""
        with closing(sqlite3.connect(copy)) as connection:
            events, sessions = (connection.execute(query).fetchone() for query in (EVENTS, SESSIONS))
        return {"events": events[0] if events else 0, "sessions": sessions[0]}

    def check(self, copy: Path, file: Path) -> None:
        """Raise NotRestored if SQLite's integrity check of the copy fails."""
        if wrong := _integrity(copy):
            raise NotRestored(file=file, why=f"the database in it is damaged: {wrong}", hint="Take another backup.")

    def load(self, copy: Path, aside: Path) -> None:
        """Rename a copy into place, after moving the old file and its write-ahead log aside."""
        Path(self.file).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = Path(f"{self.file}.restored")
        shutil.copyfile(copy, part)
        os.chmod(part, 0o600)
        for side in SIDES:
            if os.path.exists(self.file + side):
                shutil.move(self.file + side, aside / Path(self.file + side).name)
        os.rename(part, self.file)


@dataclass(frozen=True)
class PostgresCopy:
    """Copies of a PostgreSQL database, made by PostgreSQL's own programs."""

    url: str
    kind: str = "postgresql"

    @property
    def address(self) -> str:
        """The database's address, without the password."""
        return self._split()[0]

    def is_used(self) -> bool:
        """Whether the database has tables."""
        return self._ask("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") != "0"

    def save(self, to: Path) -> None:
        """Write a dump of one snapshot with pg_dump."""
        self._run("pg_dump", "--format=custom", "--no-owner", f"--file={to}", wrong=NotBackedUp)
        os.chmod(to, 0o600)

    def look_at(self, copy: Path) -> dict[str, Any]:
        """Return how many sessions the live database has now; events aren't counted."""
        return {"sessions": int(self._ask(SESSIONS))}

    def check(self, copy: Path, file: Path) -> None:
        """Raise NotRestored unless pg_restore can list the dump."""
        done = subprocess.run([_program("pg_restore"), "--list", str(copy)], capture_output=True, text=True)
        if done.returncode:
            raise NotRestored(file=file, why=f"the database in it is damaged: {_last(done.stderr)}")

    def load(self, copy: Path, aside: Path) -> None:
        """Restore a dump with pg_restore, in one transaction; the previous content is dumped to `aside` first."""
        if self.is_used():
            self.save(aside / DATABASE)
        words = ("--clean", "--if-exists", "--no-owner", "--single-transaction", "--exit-on-error", str(copy))
        self._run("pg_restore", *words, wrong=NotRestored, file=copy)

    def _ask(self, query: str) -> str:
        return self._run("psql", "-X", "-A", "-t", "-c", query, wrong=NotBackedUp).strip()

    def _run(self, program: str, *words: str, wrong: type[NotBackedUp | NotRestored], **values: Any) -> str:
        address, password = self._split()
        environment = {**os.environ, **({"PGPASSWORD": password} if password else {})}
        argv = [_program(program), f"--dbname={address}", *words]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise wrong(why=f"{program}: {_last(done.stderr)}", **values)
        return done.stdout

    def _split(self) -> tuple[str, str]:
        """Return the address without its password, and the password, which must never be in a command's arguments."""
        parts = urlsplit(self.url)
        login, _, host = parts.netloc.rpartition("@")
        user, _, password = login.partition(":")
        plain = parts._replace(scheme="postgresql", netloc=f"{user}@{host}" if user else host)
        return urlunsplit(plain), unquote(password)


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise NotBackedUp(why=f"{name} is not here", hint="Install PostgreSQL's client programs: postgresql-client")
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
