"""People's uploads: list, show, keep and remove them, and find the sessions that need them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sublet.booking.model.phases import Phase
from sublet.data.model.uploads import Upload, UploadedFile, split_upload
from sublet.data.uploads.area import UploadArea
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import BadUpload, NotFound, UploadInUse
from sublet.kernel.settings import Settings
from sublet.kernel.texts import describe_duration
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

NEEDING = frozenset({Phase.ACCEPTED, Phase.WAITING, Phase.PREPARING})  # their data isn't staged yet
MOST_SESSIONS = 10_000
LIST = "`sublet upload list` lists your uploads."


@dataclass(frozen=True, slots=True)
class FileProgress:
    """A file of an upload, and how many bytes of it are here."""

    file: UploadedFile
    offset: int


@dataclass
class Uploads:
    """Lists, shows, keeps and removes uploads."""

    settings: Settings
    store: Store
    now: Clock
    area: UploadArea

    async def list(self, person: Person) -> list[Upload]:
        """List a person's uploads, by name."""
        return await self.store.read(lambda tx: tx.uploads.of(person.name))

    async def get(self, person: Person, name: str) -> tuple[Upload, Sequence[FileProgress], Sequence[str]]:
        """Return an upload with its files, and the sessions that wait for it."""

        def find(tx: Tx) -> tuple[Upload, list[UploadedFile], list[str]]:
            upload = _find(tx, person, name)
            return upload, tx.uploads.files(upload.id), list_uses(tx, upload)

        upload, files, uses = await self.store.read(find)
        return upload, await asyncio.to_thread(self._measure, files), uses

    def _measure(self, files: Sequence[UploadedFile]) -> Sequence[FileProgress]:
        return [FileProgress(file, file.size if file.is_whole else self.area.offset(file.id)) for file in files]

    async def keep(self, person: Person, name: str, length: timedelta, host: str = "") -> Upload:
        """Keep an upload for this long from now on."""
        longest = self.settings.uploads.longest
        if not timedelta(0) < length <= longest:
            why = f"it can be kept for {describe_duration(longest)} at most."
            raise BadUpload(why=why, hint="Say less; it can be said again later.")
        until = self.now() + length
        return await self.store.write(lambda tx: self._keep(tx, person, name, until, host))

    def _keep(self, tx: Tx, person: Person, name: str, until: datetime, host: str) -> Upload:
        upload = _find(tx, person, name)
        tx.uploads.keep(upload.id, until)
        detail = {"id": upload.id, "until": until.isoformat()}
        tx.audit.add(AuditEntry(self.now(), person.name, "upload.keep", "upload", upload.name, detail, host))
        return replace(upload, keep_until=until)

    async def remove(self, person: Person, name: str, host: str = "", *, force: bool = False) -> None:
        """Remove an upload with its files; raise UploadInUse if sessions wait for it, unless `force`."""
        files = await self.store.write(lambda tx: self._remove(tx, person, name, host, force))
        await asyncio.to_thread(self.area.remove, files)

    def _remove(self, tx: Tx, person: Person, name: str, host: str, force: bool) -> Sequence[str]:
        upload = _find(tx, person, name)
        uses = list_uses(tx, upload)
        if uses and not force:
            raise UploadInUse(name=upload.name, sessions=", ".join(session[:8] for session in uses))
        detail = {"id": upload.id, "files": upload.files, "bytes": upload.size}
        tx.audit.add(AuditEntry(self.now(), person.name, "upload.remove", "upload", upload.name, detail, host))
        return tx.uploads.remove(upload.id)


def _find(tx: Tx, person: Person, name: str) -> Upload:
    upload = tx.uploads.find(person.name, name)
    if upload is None:
        raise NotFound(noun="upload", name=name, hint=LIST)
    return upload


def list_uses(tx: Tx, upload: Upload) -> list[str]:
    """List its owner's sessions that haven't staged their data from the upload yet."""
    sessions = tx.sessions.list(person=upload.person, phases=NEEDING, limit=MOST_SESSIONS).items
    return [session.id for session in sessions if _needs(tx, session.offerset, upload)]


def _needs(tx: Tx, offerset: str, upload: Upload) -> bool:
    asked = tx.offersets.get(offerset)
    return asked is not None and any(split_upload(data.location)[0] == upload.id for data in asked.request.data)


def drop_file(tx: Tx, file: UploadedFile) -> list[str]:
    """Remove a file, and its upload if that has no files left; return the file's id, to delete its bytes."""
    tx.uploads.remove_file(file)
    upload = tx.uploads.get(file.upload)
    if upload and not upload.files:
        tx.uploads.remove(upload.id)
    return [file.id]
