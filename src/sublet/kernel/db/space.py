"""Returns unused pages of a SQLite file to the file system, a few at a time."""

from __future__ import annotations

from sublet.kernel.db.sql import Sql

LITTLE = 1024  # free pages (4 MiB) that are kept for new data
SHARE = 8  # an eighth of the file is kept, too
INCREMENTAL = 2  # SQLite's code for incremental auto-vacuum


class Space:
    """The free space of the database's file, within one transaction."""

    def __init__(self, sql: Sql) -> None:
        """Work in the transaction of `sql`."""
        self._sql = sql

    def give_back(self, most: int) -> int:
        """Free at most `most` pages; return how many more could be freed. PostgreSQL needs nothing here."""
        if self._sql.dialect != "sqlite" or self._number("auto_vacuum") != INCREMENTAL:
            return 0
        surplus = self._number("freelist_count") - max(LITTLE, self._number("page_count") // SHARE)
        cursor = self._sql.connection.connection.cursor()
        for _ in range(min(surplus, most)):  # Python's driver runs only one step, which frees one page
            cursor.execute("PRAGMA incremental_vacuum(1)")
            cursor.fetchall()
        cursor.close()
        return max(0, surplus - most)

    def _number(self, pragma: str) -> int:
        return int(self._sql.connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() or 0)
