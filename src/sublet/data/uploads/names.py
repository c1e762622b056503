"""Resolves `upload:NAME/PATH` in requests to one of the requester's uploads, and pins its id."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data, Request, SentResults
from sublet.data.model.uploads import EXAMPLE, SCHEME, Upload, UploadedFile, split_upload
from sublet.kernel.texts import count_text
from sublet.movers.arrival import refuse
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

ALL = "*"


@dataclass
class UploadNames:
    """Resolves the names of uploads."""

    store: Store

    async def resolve(self, person: Person, request: Request) -> Request | Reason | None:
        """Return the request with uploads named by id, or a Reason if one doesn't exist or is incomplete."""
        if person.guest or not any(split_upload(data.location)[0] for data in request.data):
            return None
        pinned = await self.store.read(lambda tx: [_pin(tx, person, data) for data in request.data])
        for item in pinned:
            if isinstance(item, Reason):
                return item
        return replace(request, data=tuple(item for item in pinned if isinstance(item, Data)))


def _pin(tx: Tx, person: Person, data: Data) -> Data | Reason:
    name, path = split_upload(data.location)
    if not name:
        return data
    upload = tx.uploads.find(person.name, name)
    if upload is None:
        return refuse(data, f"You have no upload {name}.", nearest=_suggest(tx.uploads.of(person.name)))
    files = choose_files(tx.uploads.files(upload.id), path)
    if not files:
        return refuse(
            data, f"The upload {upload.name} has no file {path}.", nearest=f"sublet upload show {upload.name}"
        )
    if unfinished := [file for file, _ in files if not file.is_whole]:
        message = f"{count_text(len(unfinished), 'file')} of the upload {upload.name} did not come whole yet."
        return refuse(data, message, nearest=f"send the rest, or remove it: sublet upload show {upload.name}")
    return replace(data, location=f"{SCHEME}:{upload.id}/{path}", size=sum(file.size for file, _ in files))


def choose_files(files: Sequence[UploadedFile], path: str) -> list[tuple[UploadedFile, str]]:
    """Return an upload's files that a path means, each with its path below that; all files if the path is empty.

    A file that is being replaced still counts in its old version.
    """
    whole = {file.path for file in files if file.is_whole}
    chosen = SentResults(path or ALL, "")
    candidates = (file for file in files if file.is_whole or file.path not in whole)
    return [(file, place) for file in candidates if (place := chosen.place(file.path))]


def _suggest(uploads: Sequence[Upload]) -> str:
    return f"{SCHEME}:{uploads[0].name}/" if uploads else f"{EXAMPLE}, after: sublet upload DIR"
