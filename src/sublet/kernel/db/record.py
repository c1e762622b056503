"""What SUBLET_HOME remembers of its database, so that one that is gone, cut or damaged is not taken for a new one.

The service writes down now and then how many events its database has ever had. The database itself is always ahead of
that: if it is behind, committed work has been lost.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from contextlib import closing
from dataclasses import asdict, dataclass

FILE = "database.json"
SQLITE = "sqlite:///"
LARGE = 256 << 20  # bytes; a larger database is checked page by page only where that is asked for: by doctor
ROOM = 64 << 10  # bytes; with less, the next write to a SQLite database may fail
EVENTS = "SELECT seq FROM sqlite_sequence WHERE name = 'events'"


@dataclass(frozen=True)
class DatabaseRecord:
    """The database of a home, as it was when the service last looked."""

    database: str  # its address, without a password
    events: int  # that it has ever had


@dataclass(frozen=True)
class Damage:
    """Why a database must not be used, and what to do."""

    why: str
    advice: str
    is_lost: bool = True  # else it is whole, as far as can be seen, and can't be read at present


def record_path(home: str) -> str:
    """Where it is written down."""
    return os.path.join(home, FILE)


def read_record(home: str) -> DatabaseRecord | None:
    """What is written down; None: nothing, or nothing that can be read."""
    try:
        with open(record_path(home), encoding="utf-8") as file:
            values = json.load(file)
        return DatabaseRecord(str(values["database"]), int(values["events"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_record(home: str, record: DatabaseRecord) -> None:
    """Write it down, by rename."""
    part = f"{record_path(home)}.{os.getpid()}"
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(asdict(record), file)
    os.replace(part, record_path(home))


def sqlite_file(database: str) -> str | None:
    """The file of a SQLite database's address; None: it is another kind of database."""
    return database.removeprefix(SQLITE) if database.startswith(SQLITE) else None


def find_damage(home: str, database: str, *, thorough: bool = True) -> Damage | None:
    """What is wrong with the database at this address, as far as its files and the record tell."""
    record, file = read_record(home), sqlite_file(database)
    known = record if record and record.database == database else None
    if file is None:
        return None
    if not os.path.exists(file) or os.path.getsize(file) == 0:
        return _describe_loss(home, file) if known else None
    try:
        wrong = check_pages(file) if thorough or os.path.getsize(file) <= LARGE else ""
        if wrong:
            return _describe_damage(home, file, wrong)
        return find_loss(home, database, count_events(file))
    except sqlite3.OperationalError as error:
        return _unreadable(file, error)
    except sqlite3.Error as error:
        return _describe_damage(home, file, str(error))


def find_loss(home: str, database: str, events: int) -> Damage | None:
    """Whether it has had fewer events than the record says."""
    record = read_record(home)
    if record is None or record.database != database or events >= record.events:
        return None
    lost = record.events - events
    file = sqlite_file(database)
    cause = f"; its write-ahead log {file}-wal may have been cut or removed" if file else ""
    return Damage(f"its last {lost} events are missing{cause}", _restore(home))


def check_pages(file: str) -> str:
    """What SQLite finds wrong with the pages of a file; empty: nothing. OperationalError if it could not look."""
    with closing(sqlite3.connect(_read_only(file), uri=True, timeout=5)) as connection:
        answer = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    return "" if answer == "ok" else answer


def is_disk_full(path: str) -> bool:
    """Whether the disk of a file has no room left for a write of the database's."""
    try:
        return shutil.disk_usage(os.path.dirname(path)).free < ROOM
    except OSError:
        return False


def count_events(file: str) -> int:
    """How many events a SQLite database has ever had."""
    with closing(sqlite3.connect(_read_only(file), uri=True, timeout=5)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'").fetchone():
            return 0
        row = connection.execute(EVENTS).fetchone()
    return int(row[0]) if row else 0


def _describe_damage(home: str, file: str, wrong: str) -> Damage:
    return Damage(f"its file {file} is damaged: {wrong}", _restore(home, "Stop the service first."))


def _unreadable(file: str, error: sqlite3.OperationalError) -> Damage:
    """SQLite could not read, lock or extend a file: that says nothing of what is in it."""
    directory = os.path.dirname(file)
    if is_disk_full(file):
        return Damage(
            f"the disk of {directory} is full", "Free some space there; the database itself is intact.", is_lost=False
        )
    advice = f"Check the disk, the permissions and the owner of {directory}, then try again."
    return Damage(f"its file {file} can't be read: {error}", advice, is_lost=False)


def _describe_loss(home: str, file: str) -> Damage:
    return Damage(f"its file {file} is gone", _restore(home))


def _restore(home: str, first: str = "") -> str:
    steps = f"{first} Put it back as it was, or: sublet restore FILE --replace. ".lstrip()
    return f"{steps}To begin without what is missing, remove {record_path(home)}."


def _quote(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _read_only(file: str) -> str:
    """The address by which SQLite reads a file; where nothing can be written beside it, as one that never changes."""
    fixed = "" if os.access(os.path.dirname(file), os.W_OK) else "&immutable=1"
    return f"file:{_quote(file)}?mode=ro{fixed}"
