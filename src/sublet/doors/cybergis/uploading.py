"""A data folder that an old client uploads as one zip; it becomes an upload of its owner, file by file."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from fastapi import Request
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException
from starlette.types import Message

from sublet.booking.model.request import Data
from sublet.data.model.uploads import SCHEME, UploadWish, WrongUpload, check_upload_path
from sublet.data.unpacking import unpack_brought
from sublet.data.uploads import Uploads, UploadTransfers
from sublet.kernel.errors import BadRequest, DataNotThere, NotFound, TooLarge
from sublet.people.model.person import Person

LIMIT = 100 << 20  # bytes of one archive, as in CyberGIS-Compute
PIECE = 1 << 20
FIELDS = 20
ARCHIVE = "folder.zip"
LARGER = "Send one zip of at most 100 MiB; `sublet upload` and any client of tus send more."


async def read_form(request: Request) -> FormData:
    """Read the form, with its file on disk; raise TooLarge if it exceeds the limit."""
    length, count = request.headers.get("content-length", ""), 0
    if length.isdigit() and int(length) > LIMIT:
        raise TooLarge(limit="100 MiB")

    async def receive() -> Message:
        nonlocal count
        message = await request.receive()
        count += len(message.get("body", b""))
        if count > LIMIT:
            raise TooLarge(limit="100 MiB")
        return message

    try:
        return await Request(request.scope, receive).form(max_files=1, max_fields=FIELDS)
    except MultiPartException as error:
        raise BadRequest(detail=f"the form can't be read: {error.message}", hint=LARGER) from error


def find_file(form: FormData) -> UploadFile:
    """Return the zip file of a form; raise BadRequest if there is none."""
    file = form.get("file")
    if not isinstance(file, UploadFile) or not (file.filename or "").lower().endswith("zip"):
        raise BadRequest(detail="no zip was uploaded, as the field `file`.", hint=LARGER)
    return file


async def keep_folder(
    transfers: UploadTransfers, kept: Uploads, person: Person, job: str, form: FormData, host: str
) -> str:
    """Unpack the zip safely, replace the job's earlier upload by its files, and return their location."""
    archive, name = find_file(form), f"job-{job}"
    with tempfile.TemporaryDirectory(prefix="sublet-upload-") as place:
        folder = Path(place, name)
        files = await asyncio.to_thread(_unpack, archive, folder)
        wishes = [_wish(name, folder, file) for file in files]
        with suppress(NotFound):
            await kept.remove(person, name, host, force=True)
        for wish, file in zip(wishes, files, strict=True):
            begun = await transfers.begin(person, wish, host)
            if wish.size:
                await transfers.append(person, begun.id, 0, _read(file))
    return f"{SCHEME}:{name}/"


def _unpack(archive: UploadFile, folder: Path) -> list[Path]:
    """Unpack an archive, and return its files."""
    folder.mkdir(mode=0o700)
    with (folder / ARCHIVE).open("wb") as file:
        shutil.copyfileobj(archive.file, file, PIECE)
    try:
        unpack_brought(Data("folder", "simple-data-resource", ARCHIVE), folder)
    except DataNotThere as error:
        raise BadRequest(detail=f"the folder can't be used: {error.values['why']}", hint=LARGER) from error
    return sorted(file for file in folder.rglob("*") if file.is_file())


def _wish(name: str, folder: Path, file: Path) -> UploadWish:
    facts = file.stat()
    try:
        path = check_upload_path(str(file.relative_to(folder)))
    except WrongUpload as wrong:
        raise BadRequest(detail=str(wrong), hint="") from wrong
    return UploadWish(name, path, facts.st_size, is_executable=bool(facts.st_mode & 0o100))


async def _read(file: Path) -> AsyncIterator[bytes]:
    with file.open("rb") as reader:
        while piece := await asyncio.to_thread(reader.read, PIECE):
            yield piece
