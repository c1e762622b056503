"""The store: opens, reads and writes everything that outlives a process."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from time import monotonic
from typing import TypeVar

from sublet.kernel.db.engine import Database
from sublet.kernel.db.sql import Sql
from sublet.store.glances import Glances, NoGlance
from sublet.store.migrate import CopyBefore, migrate
from sublet.store.readers import Readers
from sublet.store.tx import Tx
from sublet.store.writer import Backlog, WriteJob, Writer

T = TypeVar("T")
JUST_NOW = 0.05  # seconds


class Store:
    """A database with one writer and a few readers; several processes may each have a store of the same database."""

    def __init__(self, database: Database) -> None:
        """Use a database whose tables are up to date; see `open`."""
        self._database = database
        self._writer = Writer(database)
        self._readers = Readers(database)
        self._glances = Glances(database)
        self._checker = ThreadPoolExecutor(1, thread_name_prefix="sublet-checker")  # never queued behind readers
        self._checking: asyncio.Future[None] | None = None

    @classmethod
    def open(cls, url: str, *, discreet: bool = False, copies: CopyBefore | None = None) -> Store:
        """Open `sqlite:////path/file` or `postgresql://…` and bring its tables up to date.

        `discreet`: hide details in later errors, because strangers may see them. `copies`: where to copy the database
        before an upgrade.
        """
        database = Database(url)
        try:
            migrate(database, copies)
        except Exception as error:
            database.close()
            raise database.meaning(error) from error
        database.discreet = discreet
        return cls(database)

    @property
    def where(self) -> str:
        """The database's address, without its password."""
        return self._database.where

    async def write(self, work: Callable[[Tx], T]) -> T:
        """Run a function in the writer's thread and return its result after the commit.

        If it raises, all of its changes are rolled back, and the exception is raised here; BrokenStore if the database
        fails. A caller that is cancelled withdraws a function that hasn't started yet; one that has started is
        completed.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._writer.put(WriteJob(work, future, loop))
        return await future

    def write_sync(self, work: Callable[[Tx], T]) -> T:
        """Like `write`, for a thread without an event loop."""
        future: Future[T] = Future()
        self._writer.put(WriteJob(work, future, None))
        return future.result()

    async def read(self, work: Callable[[Tx], T]) -> T:
        """Run a read-only function in a reader's thread, on one snapshot of the database."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._readers.put(WriteJob(work, future, loop))
        return await future

    async def glance(self, work: Callable[[Tx], T]) -> T:
        """Like `read`, for a function that reads a few rows by an index: on SQLite it runs at once, without a thread.

        It blocks the event loop meanwhile, so use `read` for anything that may take milliseconds.
        """
        try:
            return self._glances.look(work)
        except NoGlance:
            return await self.read(work)

    def read_sync(self, work: Callable[[Tx], T]) -> T:
        """Like `read`, in the calling thread."""
        try:
            with self._database.reading.connect() as connection, connection.begin():
                tx = Tx(Sql(connection), {}, locking=False)
                result = work(tx)
                tx.flush()  # nothing to write; otherwise the database refuses it
        except Exception as error:
            meaning = self._database.meaning(error)
            if meaning is error:
                raise
            raise meaning from error
        return result

    def measure_backlog(self) -> Backlog:
        """Return how much the writer has to do."""
        return self._writer.backlog

    def count_events(self) -> int:
        """Return how many events there have ever been, a number that only shrinks if committed work is lost."""
        return self.read_sync(lambda tx: tx.events.count_ever())

    async def check(self) -> None:
        """Read from the database; raise BrokenStore if it is unreachable, has no room, or was replaced.

        Concurrent callers share one check. If a read or write has just succeeded, only the file is checked, so that a
        monitor doesn't wait behind other work.
        """
        if monotonic() - max(each.good_at for each in (self._glances, self._readers, self._writer)) < JUST_NOW:
            self._check_file()
            return
        if self._checking is None or self._checking.done():
            try:
                self._checking = asyncio.get_running_loop().run_in_executor(self._checker, self._check)
            except RuntimeError as error:
                raise self._database.describe_broken("it is closed") from error
        await asyncio.shield(self._checking)

    def _check(self) -> None:
        self._check_file()
        self.read_sync(lambda tx: tx.sessions.next_due())

    def _check_file(self) -> None:
        self._database.check_file()
        self._database.check_room()

    def close(self) -> None:
        """Finish the queued writes, then close the database."""
        self._writer.close()
        self._readers.close()
        self._glances.close()
        self._writer.good_at = self._readers.good_at = self._glances.good_at = -math.inf
        self._checker.shutdown()
        self._database.close()
