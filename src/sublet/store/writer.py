"""The one writer thread, which runs queued functions in one transaction, so that they share a commit."""

from __future__ import annotations

import asyncio
import math
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, NamedTuple

from sqlalchemy.exc import DBAPIError

from sublet.booking.store.bookings import Memory
from sublet.kernel.db.engine import Database
from sublet.kernel.db.sql import Sql
from sublet.kernel.errors import BrokenStore
from sublet.store.tx import Tx

MOST = 64  # functions in one transaction
A_TURN = 8  # results that are delivered in one iteration of an event loop


@dataclass(slots=True, eq=False)
class WriteJob:
    """A queued function, and the future for its result."""

    work: Callable[[Tx], Any]
    future: asyncio.Future[Any] | Future[Any]
    loop: asyncio.AbstractEventLoop | None  # the future's event loop
    result: Any = None
    error: BaseException | None = None


class Backlog(NamedTuple):
    """How much a writer has to do."""

    works: int  # functions that are queued or not committed yet
    turns: int  # transactions so far; while this doesn't change, there is no progress


class Writer:
    """Runs functions one after another, several per commit; each one succeeds or is rolled back by itself."""

    def __init__(self, database: Database) -> None:
        """Start the thread."""
        self._database = database
        self._memory: Memory = {}
        self._sql: Sql | None = None
        self._queue: SimpleQueue[WriteJob | None] = SimpleQueue()
        self._door = threading.Lock()
        self._closed = False
        self._doing = 0  # functions in the current transaction
        self._turns = 0
        self.good_at = -math.inf  # the time of the last commit, by the monotonic clock
        self._thread = threading.Thread(target=self._run, name="sublet-writer", daemon=True)
        self._thread.start()

    def put(self, job: WriteJob) -> None:
        """Queue a function."""
        with self._door:
            if self._closed:
                raise self._database.describe_broken("it is closed")
            self._queue.put(job)

    @property
    def backlog(self) -> Backlog:
        """How much there is to do now."""
        return Backlog(self._queue.qsize() + self._doing, self._turns)

    def close(self) -> None:
        """Finish the queue, then stop the thread."""
        with self._door:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while self._turn():
            pass
        self._disconnect()

    def _turn(self) -> bool:
        """Wait for jobs, run those that are queued and deliver their results; return False after the last."""
        batch = [self._queue.get()]
        try:
            while len(batch) < MOST and batch[-1] is not None:
                batch.append(self._queue.get_nowait())
        except Empty:
            pass
        jobs = [job for job in batch if job is not None and not job.future.cancelled()]
        if jobs:
            self._doing = len(jobs)
            self._commit(jobs)
            self._doing, self._turns = 0, self._turns + 1
            deliver(jobs)
        return batch[-1] is not None

    def _commit(self, jobs: list[WriteJob]) -> None:
        """Run all jobs in one transaction; if it can't be committed, all of them fail."""
        try:
            sql = self._begin()
            tx = Tx(sql, self._memory, locking=True)
            run = self._among_others if len(jobs) > 1 else self._alone
            for job in jobs:
                run(tx, sql, job)
            tx.flush()
            sql.connection.commit()
            self.good_at = monotonic()
        except Exception as error:  # the thread must survive any failure of the database
            meaning = self._database.meaning(error)
            why = str(meaning.values.get("why")) if isinstance(meaning, BrokenStore) else repr(error)
            for job in jobs:
                job.error = self._database.describe_broken(why)
                job.error.__cause__ = error
            self._memory.clear()
            self._disconnect()

    def _begin(self) -> Sql:
        """Begin a transaction, on a new connection if the last one was lost meanwhile."""
        if self._sql is not None:
            try:
                self._sql.forget()
                self._database.begin(self._sql.connection)
            except DBAPIError as error:
                self._disconnect()
                if not error.connection_invalidated:
                    raise
            else:
                return self._sql
        self._sql = Sql(self._database.writing.connect())
        self._database.begin(self._sql.connection)
        return self._sql

    def _among_others(self, tx: Tx, sql: Sql, job: WriteJob) -> None:
        """Run one job of several; if it raises, roll back its changes only."""
        sql.word("SAVEPOINT work")
        try:
            job.result = job.work(tx)
            tx.settle()
        except BaseException as error:
            sql.word("ROLLBACK TO SAVEPOINT work")
            sql.forget()
            tx.revert()
            job.error = self._database.meaning(error)
        sql.word("RELEASE SAVEPOINT work")

    def _alone(self, tx: Tx, sql: Sql, job: WriteJob) -> None:
        """Run the only job of a transaction, which needs no savepoint."""
        try:
            job.result = job.work(tx)
            tx.settle()
        except BaseException as error:
            sql.connection.rollback()
            tx.revert()
            job.error = self._database.meaning(error)

    def _disconnect(self) -> None:
        if self._sql is not None:
            connection, self._sql = self._sql.connection, None
            connection.invalidate()
            connection.close()


def deliver(jobs: list[WriteJob]) -> None:
    """Deliver the results, waking each event loop once."""
    loops: dict[asyncio.AbstractEventLoop, list[WriteJob]] = defaultdict(list)
    for job in jobs:
        if job.loop is None:
            _settle([job])
        else:
            loops[job.loop].append(job)
    for loop, theirs in loops.items():
        try:
            loop.call_soon_threadsafe(_settle, theirs)
        except RuntimeError:  # the loop is closed, and with it all waiting callers
            continue


def _settle(jobs: list[WriteJob], first: int = 0) -> None:
    """Set the results of a few jobs per iteration of the event loop, so that other tasks aren't delayed."""
    last = min(first + A_TURN, len(jobs))
    for job in jobs[first:last]:
        if job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
    if last < len(jobs) and (loop := jobs[first].loop) is not None:
        loop.call_soon(_settle, jobs, last)
