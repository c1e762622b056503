"""Copies of a database, taken while it is used: SQLite's by its backup interface, PostgreSQL's by pg_dump."""

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
    """One kind of database: how it is copied and put back."""

    @property
    def kind(self) -> str:
        """`sqlite` or `postgresql`."""

    @property
    def address(self) -> str:
        """Its address, without a password."""

    def is_used(self) -> bool:
        """Whether there is anything in it."""

    def save(self, to: Path) -> None:
        """Write a copy, as of one moment."""

    def look_at(self, copy: Path) -> dict[str, Any]:
        """How many events and sessions a copy has."""

    def check(self, copy: Path, file: Path) -> None:
        """NotRestored unless a copy is whole."""

    def load(self, copy: Path, aside: Path) -> None:
        """Put a copy in the database's place, or fail and change nothing; what is there goes to a directory."""


def copy_of(url: str) -> DatabaseCopy:
    """How the database at this address is copied."""
    file = sqlite_file(url)
    return SqliteCopy(file) if file is not None else PostgresCopy(url)


def save_sqlite(source: str, to: Path) -> None:
    """Copy a SQLite database as of one moment, with what is in its write-ahead log, whoever writes meanwhile."""
    os.close(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with closing(sqlite3.connect(source, timeout=30)) as reading, closing(sqlite3.connect(to)) as writing:
        reading.execute("PRAGMA query_only = ON")
        reading.backup(writing)
        writing.execute("PRAGMA journal_mode = DELETE")  # the copy is one file


@dataclass(frozen=True)
class SqliteCopy:
    """An embedded database."""

    file: str
    kind: str = "sqlite"

    @property
    def address(self) -> str:
        """As the settings have it."""
        return f"{SQLITE}{self.file}"

    def is_used(self) -> bool:
        """Whether there is a file."""
        return os.path.exists(self.file)

    def save(self, to: Path) -> None:
        """By SQLite's backup interface."""
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
        """By asking it."""
        with closing(sqlite3.connect(copy)) as connection:
            events, sessions = (connection.execute(query).fetchone() for query in (EVENTS, SESSIONS))
        return {"events": events[0] if events else 0, "sessions": sessions[0]}

    def check(self, copy: Path, file: Path) -> None:
        """All of its pages and indexes."""
        if wrong := _integrity(copy):
            raise NotRestored(file=file, why=f"the database in it is damaged: {wrong}", hint="Take another backup.")

    def load(self, copy: Path, aside: Path) -> None:
        """By rename; a log of the old one is never read into the new one."""
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
    """A database of a PostgreSQL server; its own programs do the work."""

    url: str
    kind: str = "postgresql"

    @property
    def address(self) -> str:
        """Without the password."""
        return self._split()[0]

    def is_used(self) -> bool:
        """Whether there are tables."""
        return self._ask("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") != "0"

    def save(self, to: Path) -> None:
        """By pg_dump, in one snapshot."""
        self._run("pg_dump", "--format=custom", "--no-owner", f"--file={to}", wrong=NotBackedUp)
        os.chmod(to, 0o600)

    def look_at(self, copy: Path) -> dict[str, Any]:
        """How many sessions there are now."""
        return {"sessions": int(self._ask(SESSIONS))}

    def check(self, copy: Path, file: Path) -> None:
        """That pg_restore can list it."""
        done = subprocess.run([_program("pg_restore"), "--list", str(copy)], capture_output=True, text=True)
        if done.returncode:
            raise NotRestored(file=file, why=f"the database in it is damaged: {_last(done.stderr)}")

    def load(self, copy: Path, aside: Path) -> None:
        """By pg_restore, in one transaction; what was there is dumped aside before."""
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
        """The address without its password, and that: a password is never among the words of a command."""
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
