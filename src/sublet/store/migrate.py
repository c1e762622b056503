"""Brings the tables up to date when a store is opened."""

from __future__ import annotations

from sqlalchemy import Connection, inspect, text

from sublet.errors import BrokenStore
from sublet.store.engine import Database
from sublet.store.tables import metadata

HEAD = "0008"  # the newest migration that this version ships


def migrate(database: Database) -> None:
    """Run the migrations that are missing; of several processes that start together, one does it."""
    with database.reading.connect() as connection:
        if version(connection) == HEAD:
            return
    with database.writing.connect() as connection:
        database.begin(connection)
        if not inspect(connection).get_table_names():
            furnish(connection)
        elif version(connection) != HEAD:
            upgrade(database, connection)
        connection.commit()


def version(connection: Connection) -> str | None:
    """The newest migration that has been run."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def furnish(connection: Connection) -> None:
    """Make the tables of today in an empty database, as all migrations would."""
    metadata.create_all(connection, checkfirst=False)
    connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL PRIMARY KEY)"))
    connection.execute(text("INSERT INTO alembic_version VALUES (:head)"), {"head": HEAD})


def upgrade(database: Database, connection: Connection) -> None:
    """Run what is missing, in the transaction that the connection is in."""
    # Alembic takes longer to import than all else here, and almost every start has nothing to do for it.
    from alembic import command
    from alembic.util.exc import CommandError

    from sublet.store.migrations import config_for

    try:
        command.upgrade(config_for(connection), "head")
    except CommandError as error:
        raise BrokenStore(
            where=database.where, why=str(error), hint="A newer Sublet made it: use that version, or another database."
        ) from error
