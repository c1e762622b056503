"""The reader threads, which run the functions that queue up together on one snapshot of the database."""

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

MOST = 8  # functions on one snapshot; at most these wait for a slow one


class Readers:
    """A few threads with one connection each, which share a queue."""

    def __init__(self, database: Database) -> None:
        """Start no thread before the first read."""
        self._database = database
        self._waiting: deque[WriteJob] = deque()
        self._called = False  # whether a reader has been woken for the queue
        self._caller: asyncio.AbstractEventLoop | None = None  # the loop that wakes it; a closed one won't
        self._calls: SimpleQueue[None] = SimpleQueue()
        self._door = threading.Lock()
        self._closed = False
        self._threads: list[threading.Thread] = []
        self.good_at = -math.inf  # the time of the last successful read, by the monotonic clock

    def put(self, job: WriteJob) -> None:
        """Queue a function for a reader; it sees everything that was committed before this call.

        A reader is woken in the event loop's next iteration, so that all functions of one iteration are read together:
        waking a thread, and beginning and ending a snapshot, costs more than most functions do.
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
        """Finish the queue, then stop the threads."""
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
        """Wait to be woken, and return the first jobs of the queue; an empty list means to stop.

        Another reader is woken if more jobs are left. The caller begins its snapshot afterwards, so that all jobs see
        what was committed before they were queued.
        """
        while True:
            self._calls.get()
            with self._door:
                jobs = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
                self._called = bool(self._waiting)
                is_over = self._closed
            if self._called or is_over:  # after closing, each reader wakes the next, until all have stopped
                self._calls.put(None)
            if jobs or is_over:
                return jobs


class _Reader:
    """One reader thread."""

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
        """Run all jobs on one snapshot; after an unexpected error, the remaining jobs get a new one."""
        sql: Sql | None = None
        for job in jobs:
            try:
                sql = sql or self._begin()
                tx = Tx(sql, {}, locking=False)
                job.result = job.work(tx)
                tx.flush()  # nothing to write; otherwise the database refuses it
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
        """Begin a snapshot, on a new connection if the last one was lost meanwhile."""
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
        except DBAPIError:  # the connection was lost after all jobs had run
            self._disconnect()

    def _disconnect(self) -> None:
        if self._sql is not None:
            connection, self._sql = self._sql.connection, None
            connection.invalidate()
            connection.close()
