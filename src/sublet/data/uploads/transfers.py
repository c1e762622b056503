"""Receives files: create, append and cancel. What tus calls an upload is one file here."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from sublet.booking.model.amounts import memory_text
from sublet.data.model.uploads import Upload, UploadedFile, UploadWish
from sublet.data.uploads.area import ChunkChecksum, PartWriter, UploadArea
from sublet.data.uploads.uploads import drop_file
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import BadUpload, NotAllowed, NotFound, ServiceFull, UploadPathTaken, UploadQuotaFull
from sublet.kernel.faults import point
from sublet.kernel.settings import Settings
from sublet.kernel.streams import closing
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

PIECE = 1 << 20  # bytes per write


@dataclass(frozen=True, slots=True)
class Arrived:
    """A file, and how many bytes of it have come."""

    file: UploadedFile
    offset: int


@dataclass
class UploadTransfers:
    """Receives files piece by piece."""

    settings: Settings
    store: Store
    now: Clock
    area: UploadArea

    async def begin(self, person: Person, wish: UploadWish, host: str = "") -> UploadedFile:
        """Create a file; raise UploadQuotaFull or ServiceFull if there is no room for it."""
        if person.guest:
            raise NotAllowed(why="Guests of a personal service upload nothing here.", how="Use your own service.")
        await asyncio.to_thread(self._require_room, wish.size)
        file = await self.store.write(lambda tx: self._begin(tx, person, wish, host))
        point("upload.begun")
        if not file.size:
            writer = await asyncio.to_thread(self.area.open, file.id, 0)
            await self._close(writer, file)
        return file

    def _require_room(self, size: int) -> None:
        self.area.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if size > shutil.disk_usage(self.area.root).free:
            raise ServiceFull(f"The service's disk has no room for {memory_text(size)}.")

    def _begin(self, tx: Tx, person: Person, wish: UploadWish, host: str) -> UploadedFile:
        now, limits = self.now(), self.settings.uploads
        self._check_quota(tx, person, wish.size)
        upload = tx.uploads.find(person.name, wish.name)
        if upload is None:
            upload = Upload(str(uuid4()), person.name, wish.name, now, now + limits.keep)
            tx.uploads.add(upload)
            tx.audit.add(AuditEntry(now, person.name, "upload.add", "upload", upload.name, {"id": upload.id}, host))
        if upload.files >= limits.most_files:
            raise UploadQuotaFull(
                size="a file", why=f"{upload.name} has {upload.files} files, the most that it can have"
            )
        if other := tx.uploads.find_obstacle(upload.id, wish.path):
            raise UploadPathTaken(path=wish.path, other=other)
        tx.uploads.keep(upload.id, max(upload.keep_until, now + limits.keep))
        new = UploadedFile(
            str(uuid4()),
            upload.id,
            wish.path,
            wish.size,
            now,
            now + limits.unfinished,
            modified=wish.modified,
            is_executable=wish.is_executable,
        )
        tx.uploads.add_file(new)
        return new

    def _check_quota(self, tx: Tx, person: Person, size: int) -> None:
        limits = self.settings.uploads
        own, everyone = tx.uploads.count_bytes(person.name), tx.uploads.count_bytes()
        if own + size > limits.per_person:
            why = f"your uploads have {memory_text(own)} of the {memory_text(limits.per_person)} that you can have"
            raise UploadQuotaFull(size=memory_text(size), why=why)
        if everyone + size > limits.in_all:
            why = f"the uploads of all people have {memory_text(everyone)} of {memory_text(limits.in_all)}"
            raise UploadQuotaFull(size=memory_text(size), why=why)

    async def look(self, person: Person, id: str) -> Arrived:
        """Return how much of a file has come, and complete a file whose last bytes came just before a crash."""
        file = await self._find(person, id)
        offset = file.size if file.is_whole else await asyncio.to_thread(self.area.offset, id)
        if offset == file.size and not file.is_whole:
            await self._finish(file)
        return Arrived(file, offset)

    async def append(
        self,
        person: Person,
        id: str,
        offset: int,
        pieces: AsyncIterator[bytes],
        checksum: ChunkChecksum | None = None,
    ) -> Arrived:
        """Append to a file from this offset on; bytes that came before a connection broke are kept."""
        file = await self._find(person, id)
        if file.is_whole:
            if offset != file.size:
                raise BadUpload(why="this file is whole already.", hint="Send it as a new one to replace it.")
            return Arrived(file, offset)
        writer = await asyncio.to_thread(self.area.open, id, offset, checksum)
        try:
            await _write(writer, pieces, file)
            await asyncio.to_thread(writer.finish)
            point("upload.written")
        finally:
            await self._close(writer, file)
        return Arrived(file, writer.offset)

    async def _close(self, writer: PartWriter, file: UploadedFile) -> None:
        writer.close()
        if writer.offset == file.size:
            await self._finish(file)
        else:
            expires: datetime = self.now() + self.settings.uploads.unfinished
            await self.store.write(lambda tx: tx.uploads.touch_file(file.id, expires))

    async def _finish(self, file: UploadedFile) -> None:
        replaced = await self.store.write(lambda tx: tx.uploads.finish_file(file))
        point("upload.finished")
        await asyncio.to_thread(self.area.remove, replaced)

    async def cancel(self, person: Person, id: str) -> None:
        """Cancel an incomplete file, or remove a complete one."""
        file = await self._find(person, id)
        await self.store.write(lambda tx: drop_file(tx, file))
        await asyncio.to_thread(self.area.remove, [id])

    async def _find(self, person: Person, id: str) -> UploadedFile:
        def find(tx: Tx) -> UploadedFile | None:
            file = tx.uploads.file(id)
            upload = tx.uploads.get(file.upload) if file else None
            return file if upload and upload.person == person.name else None

        file = await self.store.read(find)
        if file is None:
            raise NotFound(noun="upload of a file", name=id, hint="It was removed, or has expired: upload it again.")
        return file


async def _write(writer: PartWriter, pieces: AsyncIterator[bytes], file: UploadedFile) -> None:
    """Write pieces as they come, buffered; raise BadUpload if there are more bytes than announced."""
    waiting = bytearray()
    try:
        async with closing(pieces) as pieces:
            async for piece in pieces:
                if writer.offset + len(waiting) + len(piece) > file.size:
                    raise BadUpload(why=f"the file was to have {file.size} bytes, and more were sent.")
                waiting += piece
                if len(waiting) >= PIECE:
                    ready, waiting = bytes(waiting), bytearray()
                    await asyncio.to_thread(writer.write, ready)
    finally:
        if waiting:
            writer.write(bytes(waiting))  # whatever the error, these bytes needn't be sent again
