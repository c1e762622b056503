"""The threads that read: those who come while one is on its way are read for together, on one view of the database."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import deque
from queue import SimpleQueue
from time import monotonic

from sqlalchemy.exc import DBAPIError

from sublet.kernel.db.engine import READERS, Database
from sublet.kernel.db.sql import Sql
from sublet.kernel.errors import SubletError
from sublet.store.tx import Tx
from sublet.store.writer import WriteJob, deliver

MOST = 8  # works on one view: if one of them takes long, no more than these wait for it


class Readers:
    """A few threads, each with a connection of its own; what waits is shared among them."""

    def __init__(self, database: Database) -> None:
        """No thread is started before someone reads."""
        self._database = database
        self._waiting: deque[WriteJob] = deque()
        self._called = False  # whether a reader is on its way to those who wait
        self._caller: asyncio.AbstractEventLoop | None = None  # who called it; a loop that is closed calls nobody
        self._calls: SimpleQueue[None] = SimpleQueue()
        self._door = threading.Lock()
        self._closed = False
        self._threads: list[threading.Thread] = []
        self.good_at = -math.inf  # when one of them last ended a look, by the monotonic clock

    def put(self, job: WriteJob) -> None:
        """Let a work wait for a reader; it sees all that was committed before this.

        A reader is called when the event loop has gone on to its next turn, so that what comes in one turn is read
        for together: to wake a thread, and to begin and end a view, costs more than most works do.
        """
        with self._door:
            if self._closed:
                raise self._database.describe_broken("it is closed")
            if not self._threads:
                self._start()
            self._waiting.append(job)
            is_called = self._called and self._caller is job.loop
            self._called, self._caller = True, job.loop
        if is_called:
            return
        if job.loop is None:
            self._calls.put(None)
        else:
            job.loop.call_soon(self._calls.put, None)

    def close(self) -> None:
        """Read for those who wait, then stop."""
        with self._door:
            self._closed = True
        self._calls.put(None)
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        for number in range(READERS):
            name = f"sublet-reader-{number}"
            thread = threading.Thread(target=_Reader(self, self._database).run, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def take(self) -> list[WriteJob]:
        """Wait for a call; the first of those who wait, and another reader is called if there are more. Nobody: stop.

        Whoever uses this begins to read afterwards, so that all of them see what was there when they came.
        """
        while True:
            self._calls.get()
            with self._door:
                jobs = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
                self._called = bool(self._waiting)
                is_over = self._closed
            if self._called or is_over:  # once it is closed, every reader is called until none is left
                self._calls.put(None)
            if jobs or is_over:
                return jobs


class _Reader:
    """One of the threads."""

    def __init__(self, readers: Readers, database: Database) -> None:
        self._readers = readers
        self._database = database
        self._sql: Sql | None = None

    def run(self) -> None:
        while jobs := self._readers.take():
            self._read(wanted := [job for job in jobs if not job.future.cancelled()])
            deliver(wanted)
        self._disconnect()

    def _read(self, jobs: list[WriteJob]) -> None:
        """All works on one view; after one that the database refused, the others have a new one."""
        sql: Sql | None = None
        for job in jobs:
            try:
                sql = sql or self._begin()
                tx = Tx(sql, {}, locking=False)
                job.result = job.work(tx)
                tx.flush()  # nothing, or the database refuses it
            except SubletError as error:
                job.error = error
            except BaseException as error:
                job.error = self._database.meaning(error)
                if job.error is not error:
                    job.error.__cause__ = error
                self._disconnect()
                sql = None
        if sql:
            self._end(sql)

    def _begin(self) -> Sql:
        """Begin to read, on a new connection if the last one was lost meanwhile."""
        if self._sql is not None:
            try:
                self._sql.forget()
                self._database.begin_reading(self._sql.connection)
            except DBAPIError as error:
                self._disconnect()
                if not error.connection_invalidated:
                    raise
            else:
                return self._sql
        self._sql = Sql(self._database.reading.connect())
        self._database.begin_reading(self._sql.connection)
        return self._sql

    def _end(self, sql: Sql) -> None:
        try:
            sql.connection.rollback()
            self._readers.good_at = monotonic()
        except DBAPIError:  # it was lost after all had read
            self._disconnect()

    def _disconnect(self) -> None:
        if self._sql is not None:
            connection, self._sql = self._sql.connection, None
            connection.invalidate()
            connection.close()
