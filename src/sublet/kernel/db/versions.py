"""The version of a database's tables: that of the newest migration that has been run."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from sublet.kernel.db.record import read_only

HEAD = "0030"  # the newest migration that this version of Sublet ships
VERSION = "SELECT version_num FROM alembic_version"
NEWER = (
    "Install that newer version again; or go back to a backup, or to the copy from before the upgrade in "
    "SUBLET_HOME/backups: sublet restore FILE --replace"
)


def describe_newer(version: str | None) -> str:
    """Return why tables that a newer Sublet made can't be used; `NEWER` is what to do."""
    return f"a newer version of Sublet made its tables ({version}; this one knows those up to {HEAD})"


def find_newer(version: str | None) -> str:
    """Return why the tables of this version can't be used, or "" if they can."""
    return describe_newer(version) if version and version > HEAD else ""


def read_version(file: str) -> str | None:
    """Return the version of a SQLite database's tables; None if it has none, or can't be read."""
    try:
        with closing(sqlite3.connect(read_only(file), uri=True, timeout=5)) as connection:
            row = connection.execute(VERSION).fetchone()
    except sqlite3.Error:
        return None
    return str(row[0]) if row else None
