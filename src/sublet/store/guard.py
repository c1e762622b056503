"""Refuses a lost, damaged or truncated database, and records how far the current one has progressed."""

from __future__ import annotations

import asyncio
import contextlib
import os

from sublet.kernel.db.engine import address_of
from sublet.kernel.db.record import (
    Damage,
    DatabaseRecord,
    find_damage,
    find_loss,
    read_record,
    sqlite_file,
    write_record,
)
from sublet.kernel.errors import BrokenStore, LostDatabase, SubletError
from sublet.kernel.settings import Settings
from sublet.store.store import Store

OFTEN = 2.0  # seconds between two records


class DatabaseGuard:
    """The guard of one home's database."""

    def __init__(self, settings: Settings) -> None:
        """Note the home and the database's address, without opening anything."""
        self._home = str(settings.home)
        self._where = address_of(settings.database_url)
        self._file: os.stat_result | None = None  # the SQLite file that is open

    def check_files(self) -> None:
        """Raise LostDatabase if the files aren't those that the last service left."""
        _refuse(self._where, find_damage(self._home, self._where, thorough=False))

    def check_store(self, store: Store) -> None:
        """Raise LostDatabase if a newly opened store has fewer events than were recorded."""
        file = sqlite_file(self._where)
        self._file = os.stat(file) if file else None
        _refuse(self._where, find_loss(self._home, self._where, store.count_events()))
        self.record(store)

    def record(self, store: Store) -> None:
        """Record how many events there have been, if possible, and if nobody put another database there meanwhile."""
        with contextlib.suppress(SubletError, OSError):  # a full disk or an unreachable database is reported elsewhere
            if self._file and not os.path.samestat(self._file, os.stat(sqlite_file(self._where) or "")):
                return
            new = DatabaseRecord(self._where, store.count_events())
            if new != read_record(self._home):
                write_record(self._home, new)

    async def run(self, store: Store) -> None:
        """Record the number of events every few seconds, until cancelled."""
        while True:
            await asyncio.sleep(OFTEN)
            await asyncio.to_thread(self.record, store)


def _refuse(where: str, damage: Damage | None) -> None:
    if damage and not damage.is_lost:
        raise BrokenStore(where=where, why=damage.why, hint=damage.advice)
    if damage:
        raise LostDatabase(where=where, why=damage.why, hint=damage.advice)
