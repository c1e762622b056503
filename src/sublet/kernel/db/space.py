"""Room in a SQLite file that nothing uses any more is given back to the file system, a little at a time."""

from __future__ import annotations

from sublet.kernel.db.sql import Sql

LITTLE = 1024  # free pages (4 MiB) that are kept for what comes next
SHARE = 8  # and so is an eighth of the file
INCREMENTAL = 2  # SQLite's number for a file that can shrink


class Space:
    """The file's room, as one transaction sees and changes it."""

    def __init__(self, sql: Sql) -> None:
        """Of this transaction."""
        self._sql = sql

    def give_back(self, most: int) -> int:
        """Free as many pages as this at most; how many more could be. PostgreSQL does that by itself."""
        if self._sql.dialect != "sqlite" or self._number("auto_vacuum") != INCREMENTAL:
            return 0
        surplus = self._number("freelist_count") - max(LITTLE, self._number("page_count") // SHARE)
        cursor = self._sql.connection.connection.cursor()
        for _ in range(min(surplus, most)):  # Python's driver takes one step of it, and each step frees one page
            cursor.execute("PRAGMA incremental_vacuum(1)")
            cursor.fetchall()
        cursor.close()
        return max(0, surplus - most)

    def _number(self, pragma: str) -> int:
        return int(self._sql.connection.exec_driver_sql(f"PRAGMA {pragma}").scalar() or 0)
