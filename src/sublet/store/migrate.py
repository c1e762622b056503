"""Brings the tables up to date when a store is opened."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import structlog
from sqlalchemy import Connection, inspect, text

from sublet.kernel.db.copies import save_sqlite
from sublet.kernel.db.engine import Database
from sublet.kernel.db.versions import HEAD, NEWER, VERSION, describe_newer
from sublet.kernel.errors import BrokenStore
from sublet.store.tables import metadata

log = structlog.get_logger()


def migrate(database: Database, copies: CopyBefore | None = None) -> None:
    """Run the missing migrations; if several processes start together, one of them does it.

    A SQLite database is copied before its tables are changed; backing up PostgreSQL is its operator's task.
    """
    with database.reading.connect() as connection:
        if version(connection) == HEAD:
            return
    with database.writing.connect() as connection:
        database.begin(connection)
        if not inspect(connection).get_table_names():
            furnish(connection)
        elif (old := version(connection)) != HEAD:
            if copies and not database.postgres and old in list_known(connection):
                copies.make(database.url.database or "", old or "0")
            upgrade(database, connection)
        connection.commit()
    if not database.postgres:
        let_shrink(database)


def let_shrink(database: Database) -> None:
    """Convert a SQLite file to incremental auto-vacuum, as new files have it, by one VACUUM that rewrites it."""
    with database.writing.connect() as connection:
        file: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]
        if file.execute("PRAGMA auto_vacuum").fetchone()[0]:
            return
        try:
            file.execute("VACUUM")
        except sqlite3.OperationalError as error:  # no room, or another process has it open: it works without
            log.warning("database.not_vacuumed", why=str(error))


def version(connection: Connection) -> str | None:
    """Return the newest migration that has been run; None if there are none yet."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text(VERSION)).scalar()


def furnish(connection: Connection) -> None:
    """Create the current tables in an empty database, as all migrations together would."""
    metadata.create_all(connection, checkfirst=False)
    connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})


def upgrade(database: Database, connection: Connection) -> None:
    """Run the missing migrations in the connection's transaction."""
    # Imported here because Alembic is slow to import, and almost every start has no migration to run.
    from alembic import command
    from alembic.util.exc import CommandError

    from sublet.store.migrations import config_for

    old = version(connection)
    try:
        command.upgrade(config_for(connection), "head")
    except CommandError as error:
        raise BrokenStore(where=database.where, why=describe_newer(old), hint=NEWER) from error


def list_known(connection: Connection) -> set[str | None]:
    """Return the migrations that this version has, and None for a database from before there were any."""
    from alembic.script import ScriptDirectory

    from sublet.store.migrations import config_for

    return {None, *(script.revision for script in ScriptDirectory.from_config(config_for(connection)).walk_revisions())}


@dataclass(frozen=True, slots=True)
class CopyBefore:
    """Where copies of a database from before an upgrade are kept, and how many."""

    directory: Path
    keep: int = 3

    def make(self, file: str, version: str) -> Path:
        """Copy the database, and delete the oldest copies."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = f"{Path(file).stem}-{version}-{datetime.now(UTC):%Y%m%dT%H%M%S}.db"
        to = self.directory / name
        part = to.with_suffix(".part")
        part.unlink(missing_ok=True)
        save_sqlite(file, part)
        part.rename(to)
        log.info("database.copied", to=str(to), version=version)
        for old in sorted(self.directory.glob(f"{Path(file).stem}-*.db"), key=os.path.getmtime)[: -self.keep]:
            old.unlink(missing_ok=True)
        return to
