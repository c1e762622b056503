"""Reads a few rows directly in the event loop, without a thread."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from sublet.kernel.db.engine import Database
from sublet.kernel.db.sql import Sql
from sublet.kernel.errors import SubletError
from sublet.store.tx import Tx

T = TypeVar("T")


class NoGlance(Exception):
    """The read can't be done in the event loop now, so it has to be left to the readers' threads."""


class Glances:
    """A separate connection to a SQLite file, which is mostly in memory; PostgreSQL isn't read this way.

    Handing such a small read to a thread and back costs several times the read itself, since both threads need Python's
    GIL at each step.
    """

    def __init__(self, database: Database) -> None:
        """Prepare the connection; it is opened with the first read."""
        self._database = database
        self._sql: Sql | None = None
        self._door = threading.Lock()
        self._closed = database.postgres
        self.good_at = -math.inf  # the time of the last successful read, by the monotonic clock

    def look(self, work: Callable[[Tx], T]) -> T:
        """Run a function on the committed state; raise NoGlance if it has to be left to the readers, for any reason."""
        if self._closed or not self._door.acquire(blocking=False):  # closed, or another thread is reading
            raise NoGlance
        try:
            return self._look(work)
        except SubletError:
            raise
        except Exception as error:
            self._disconnect()
            raise NoGlance from error
        finally:
            self._door.release()

    def close(self) -> None:
        """Close the connection."""
        with self._door:
            self._closed = True
            self._disconnect()

    def _look(self, work: Callable[[Tx], T]) -> T:
        sql = self._sql or self._connect()
        sql.forget()
        sql.word("BEGIN")
        try:
            tx = Tx(sql, {}, locking=False)
            result = work(tx)
            tx.flush()  # nothing to write; otherwise the database refuses it
        finally:
            sql.word("ROLLBACK")
        self.good_at = monotonic()
        return result

    def _connect(self) -> Sql:
        """Open a connection that never waits for a lock, since all requests would wait with it."""
        self._sql = Sql(self._database.reading.connect())
        self._sql.word("PRAGMA busy_timeout = 0")
        return self._sql

    def _disconnect(self) -> None:
        if self._sql is not None:
            connection, self._sql = self._sql.connection, None
            connection.invalidate()
            connection.close()
