"""Cleans up uploads: removes expired ones, and bytes that belong to no upload."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sublet.data.model.uploads import UploadedFile
from sublet.data.uploads.area import UploadArea
from sublet.data.uploads.uploads import drop_file, list_uses
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import UploadBusy
from sublet.kernel.log import log
from sublet.store.store import Store
from sublet.store.tx import Tx

EVERY = timedelta(minutes=1)
SWEEP = timedelta(hours=1)
LATER = timedelta(days=1)  # how much longer uploads are kept that a session waits for
BATCH = 200


@dataclass
class UploadCare:
    """Removes expired uploads."""

    store: Store
    area: UploadArea
    doubts_clock: Callable[[Tx, datetime], bool]  # whether the machine's clock may have been set forward by mistake
    _next: datetime | None = field(default=None, init=False)
    _next_sweep: datetime | None = field(default=None, init=False)

    async def look_after(self, now: datetime) -> None:
        """Clean up once a minute, also after the clock was set back; called in each turn of the loop."""
        if self._next is not None and self._next - EVERY <= now < self._next:
            return
        self._next = now + EVERY
        await self.expire(now)
        if self._next_sweep is None or not self._next_sweep - SWEEP <= now < self._next_sweep:
            self._next_sweep = now + SWEEP
            await self.sweep()

    async def expire(self, now: datetime) -> None:
        """Finish files that came completely, and remove abandoned files and expired uploads.

        While the machine's clock may have been set forward by mistake, all of them stay.
        """
        if await self.store.read(lambda tx: self.doubts_clock(tx, now)):
            return
        for file in await self.store.read(lambda tx: tx.uploads.list_expired_files(now, BATCH)):
            await self._settle(file)
        gone = await self.store.write(lambda tx: _expire(tx, now))
        await asyncio.to_thread(self.area.remove, gone)
        if gone:
            log.info("uploads.expired", files=len(gone))

    async def _settle(self, file: UploadedFile) -> None:
        try:
            writer = await asyncio.to_thread(self.area.open, file.id, self.area.offset(file.id))
        except UploadBusy:
            return
        try:
            is_whole = writer.offset == file.size
            gone = await self.store.write(lambda tx: tx.uploads.finish_file(file) if is_whole else drop_file(tx, file))
        finally:
            writer.close()
        await asyncio.to_thread(self.area.remove, gone)

    async def sweep(self) -> None:
        """Remove bytes of files that are in no upload, left by a crash or by people who were removed."""
        there = await asyncio.to_thread(lambda: set(self.area.ids()))
        if there:
            known = await self.store.read(lambda tx: tx.uploads.find_known_files(there))
            await asyncio.to_thread(self.area.remove, there - known)


def _expire(tx: Tx, now: datetime) -> list[str]:
    gone: list[str] = []
    for upload in tx.uploads.list_expired(now, BATCH):
        if list_uses(tx, upload):
            tx.uploads.keep(upload.id, now + LATER)
            continue
        detail = {"id": upload.id, "files": upload.files, "bytes": upload.size}
        tx.audit.add(AuditEntry(now, "", "upload.expire", "upload", upload.name, {**detail, "person": upload.person}))
        gone += tx.uploads.remove(upload.id)
    return gone
