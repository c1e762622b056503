"""Refuses a database that is gone, damaged or cut short, and remembers how far the one in use has come."""

from __future__ import annotations

import asyncio
import contextlib

from sublet.kernel.db.engine import address_of
from sublet.kernel.db.record import Damage, DatabaseRecord, find_damage, find_loss, read_record, write_record
from sublet.kernel.errors import BrokenStore, LostDatabase, SubletError
from sublet.kernel.settings import Settings
from sublet.store.store import Store

OFTEN = 2.0  # seconds between two looks


class DatabaseGuard:
    """Of one home and its database."""

    def __init__(self, settings: Settings) -> None:
        """Nothing is opened."""
        self._home = str(settings.home)
        self._where = address_of(settings.database_url)

    def check_files(self) -> None:
        """LostDatabase if the files are not those that the last service left."""
        _refuse(self._where, find_damage(self._home, self._where, thorough=False))

    def check_store(self, store: Store) -> None:
        """LostDatabase if a store that was just opened has lost what was written down."""
        _refuse(self._where, find_loss(self._home, self._where, store.count_events()))
        self.record(store)

    def record(self, store: Store) -> None:
        """Write down how many events there have been, if that can be."""
        with contextlib.suppress(SubletError, OSError):  # a full disk, or a database that is away, is told elsewhere
            new = DatabaseRecord(self._where, store.count_events())
            if new != read_record(self._home):
                write_record(self._home, new)

    async def run(self, store: Store) -> None:
        """Do so now and then, until this is cancelled."""
        while True:
            await asyncio.sleep(OFTEN)
            await asyncio.to_thread(self.record, store)


def _refuse(where: str, damage: Damage | None) -> None:
    if damage and not damage.is_lost:
        raise BrokenStore(where=where, why=damage.why, hint=damage.advice)
    if damage:
        raise LostDatabase(where=where, why=damage.why, hint=damage.advice)
