"""Looks at a few rows, without a thread: whoever asks for one session is answered in the event loop itself."""

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
    """It could not be looked at once; the readers can."""


class Glances:
    """A connection of its own to a SQLite file, which is in memory mostly: PostgreSQL is never waited for here.

    To hand such a work to a thread and back costs several times the work: both want Python's lock at each step.
    """

    def __init__(self, database: Database) -> None:
        """Nothing is opened before the first look."""
        self._database = database
        self._sql: Sql | None = None
        self._door = threading.Lock()
        self._closed = database.postgres
        self.good_at = -math.inf  # when it last looked, by the monotonic clock

    def look(self, work: Callable[[Tx], T]) -> T:
        """Run a work on what is committed now; NoGlance if it has to be left to the readers, whatever the cause is."""
        if self._closed or not self._door.acquire(blocking=False):  # another thread looks
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
        """Let go of the database."""
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
            tx.flush()  # nothing, or the database refuses it
        finally:
            sql.word("ROLLBACK")
        self.good_at = monotonic()
        return result

    def _connect(self) -> Sql:
        """Never wait for a lock here: all requests would."""
        self._sql = Sql(self._database.reading.connect())
        self._sql.word("PRAGMA busy_timeout = 0")
        return self._sql

    def _disconnect(self) -> None:
        if self._sql is not None:
            connection, self._sql = self._sql.connection, None
            connection.invalidate()
            connection.close()
