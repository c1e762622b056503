"""Everything that outlives a process: opened, read and written."""

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
    """A database with one writer and a few readers. Several stores, in several processes, may share one."""

    def __init__(self, database: Database) -> None:
        """Of a database whose tables are up to date; see `open`."""
        self._database = database
        self._writer = Writer(database)
        self._readers = Readers(database)
        self._glances = Glances(database)
        self._checker = ThreadPoolExecutor(1, thread_name_prefix="sublet-checker")  # never behind those who read
        self._checking: asyncio.Future[None] | None = None

    @classmethod
    def open(cls, url: str, *, discreet: bool = False, copies: CopyBefore | None = None) -> Store:
        """Open `sqlite:////path/file` or `postgresql://…` and bring its tables up to date.

        `discreet`: strangers may hear what goes wrong from then on. `copies`: where it is copied before an upgrade.
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
        """Run a work in the writer's thread and return its result once that is committed.

        What it raises undoes all that it did, and comes back here. If the database fails, BrokenStore. A caller that
        is cancelled while the work still waits for its turn takes it back; once begun, it is done.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._writer.put(WriteJob(work, future, loop))
        return await future

    def write_sync(self, work: Callable[[Tx], T]) -> T:
        """The same for a thread without an event loop."""
        future: Future[T] = Future()
        self._writer.put(WriteJob(work, future, None))
        return future.result()

    async def read(self, work: Callable[[Tx], T]) -> T:
        """Run a work that changes nothing in a reader's thread, on one unchanging view of the database."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._readers.put(WriteJob(work, future, loop))
        return await future

    async def glance(self, work: Callable[[Tx], T]) -> T:
        """The same for a work that looks at a few rows by their index: on SQLite nothing is waited for.

        Everyone waits while it looks, so what may take milliseconds is for `read`.
        """
        try:
            return self._glances.look(work)
        except NoGlance:
            return await self.read(work)

    def read_sync(self, work: Callable[[Tx], T]) -> T:
        """The same in this thread."""
        try:
            with self._database.reading.connect() as connection, connection.begin():
                tx = Tx(Sql(connection), {}, locking=False)
                result = work(tx)
                tx.flush()  # nothing, or the database refuses it
        except Exception as error:
            meaning = self._database.meaning(error)
            if meaning is error:
                raise
            raise meaning from error
        return result

    def measure_backlog(self) -> Backlog:
        """How much the writer has to do."""
        return self._writer.backlog

    def count_events(self) -> int:
        """How many events there have ever been: a number that only grows, unless committed work is lost."""
        return self.read_sync(lambda tx: tx.events.count_ever())

    async def check(self) -> None:
        """Read from the database; BrokenStore if it is away, has no room, or is not the one that was opened.

        Whoever asks while that is being looked at gets the same answer. If someone has read or written just now, it
        answers, and no thread is waited for: a monitor does not wait behind those who work.
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
        """Do what waits to be written, then let go of the database."""
        self._writer.close()
        self._readers.close()
        self._glances.close()
        self._writer.good_at = self._readers.good_at = self._glances.good_at = -math.inf
        self._checker.shutdown()
        self._database.close()
