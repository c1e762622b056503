"""A record of the database in SUBLET_HOME, so that a lost, truncated or damaged one isn't mistaken for a new one.

The service records now and then how many events its database has ever had. The database is always ahead of the record:
if it is behind, committed work has been lost.
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
LARGE = 256 << 20  # bytes; a larger database is checked page by page only by `sublet doctor`
ROOM = 64 << 10  # bytes; with less, the next write to a SQLite database may fail
EVENTS = "SELECT seq FROM sqlite_sequence WHERE name = 'events'"


@dataclass(frozen=True)
class DatabaseRecord:
    """The database of a home, as the service last recorded it."""

    database: str  # its address, without a password
    events: int  # ever recorded


@dataclass(frozen=True)
class Damage:
    """Why a database must not be used, and what to do about it."""

    why: str
    advice: str
    is_lost: bool = True  # False: it seems intact, but can't be read at the moment


def record_path(home: str) -> str:
    """Return the path of the record."""
    return os.path.join(home, FILE)


def read_record(home: str) -> DatabaseRecord | None:
    """Return the record; None if there is none that can be read."""
    try:
        with open(record_path(home), encoding="utf-8") as file:
            values = json.load(file)
        return DatabaseRecord(str(values["database"]), int(values["events"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_record(home: str, record: DatabaseRecord) -> None:
    """Write the record atomically."""
    part = f"{record_path(home)}.{os.getpid()}"
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(asdict(record), file)
    os.replace(part, record_path(home))


def sqlite_file(database: str) -> str | None:
    """Return the file of a SQLite database's address; None for another kind of database."""
    return database.removeprefix(SQLITE) if database.startswith(SQLITE) else None


def find_damage(home: str, database: str, *, thorough: bool = True) -> Damage | None:
    """Return what is wrong with the database, as far as its files and the record show; None if nothing is."""
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
    """Return the damage if the database has had fewer events than the record says, else None."""
    record = read_record(home)
    if record is None or record.database != database or events >= record.events:
        return None
    lost = record.events - events
    file = sqlite_file(database)
    cause = f"; its write-ahead log {file}-wal may have been cut or removed" if file else ""
    return Damage(f"its last {lost} events are missing{cause}", _restore(home))


def check_pages(file: str) -> str:
    """Return what SQLite's quick check finds wrong, or ""; raise OperationalError if the file can't be read."""
    with closing(sqlite3.connect(read_only(file), uri=True, timeout=5)) as connection:
        answer = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    return "" if answer == "ok" else answer


def is_disk_full(path: str) -> bool:
    """Whether the disk of this file has no room for another write."""
    try:
        return shutil.disk_usage(os.path.dirname(path)).free < ROOM
    except OSError:
        return False


def count_events(file: str) -> int:
    """Return how many events a SQLite database has ever had."""
    with closing(sqlite3.connect(read_only(file), uri=True, timeout=5)) as connection:
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence'").fetchone():
            return 0
        row = connection.execute(EVENTS).fetchone()
    return int(row[0]) if row else 0


def _describe_damage(home: str, file: str, wrong: str) -> Damage:
    return Damage(f"its file {file} is damaged: {wrong}", _restore(home, "Stop the service first."))


def _unreadable(file: str, error: sqlite3.OperationalError) -> Damage:
    """Describe a file that SQLite can't read, lock or extend, which doesn't mean that its content is damaged."""
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


def read_only(file: str) -> str:
    """Return the URI to read a SQLite file; in a directory without write access, the file is opened as immutable."""
    fixed = "" if os.access(os.path.dirname(file), os.W_OK) else "&immutable=1"
    return f"file:{_quote(file)}?mode=ro{fixed}"
