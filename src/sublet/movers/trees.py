"""Brings a folder from a server file by file, each resumed and checked, under its own path."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import httpx2

from sublet.booking.model.request import Data
from sublet.kernel.errors import DataNotThere
from sublet.movers.arrival import missing, read_number
from sublet.movers.http import HttpMover, PartFile
from sublet.movers.port import Progress

MOST_FILES = 100_000
LONGEST_PART = 255  # bytes of a file's or folder's name, on most file systems
AT_ONCE = 8  # files that are brought in parallel
INCOMING = ".sublet-incoming"  # part files, under names that no file of the folder has


@dataclass(frozen=True)
class RemoteFile:
    """A file of a folder on a server."""

    path: str  # below the folder
    size: int
    address: str
    version: str = ""  # if the server's listing has one


async def bring_folder(
    http: HttpMover,
    client: httpx2.AsyncClient,
    data: Data,
    files: Sequence[RemoteFile],
    target: Path,
    progress: Progress,
) -> None:
    """Bring all files; raise DataNotThere for the first that can't be brought."""
    total = check_folder(data, files, http.policy.largest)
    tally = Tally(total, progress)
    turns = asyncio.Semaphore(AT_ONCE)
    incoming = target / INCOMING
    incoming.mkdir(parents=True, exist_ok=True)

    async def bring(file: RemoteFile) -> None:
        place = target / safe_path(data, file.path)
        item = replace(data, location=file.address, size=file.size)
        part = incoming / hashlib.sha256(file.path.encode("utf-8", "surrogateescape")).hexdigest()
        async with turns:
            place.parent.mkdir(parents=True, exist_ok=True)
            if not (place.is_file() and place.stat().st_size == file.size):
                await http.download(client, item, PartFile(place, part), tally.of(file.path))
        tally.of(file.path)(file.size, file.size)

    try:
        async with asyncio.TaskGroup() as group:
            for file in files:
                group.create_task(bring(file))
    except ExceptionGroup as several:
        raise several.exceptions[0] from several
    await asyncio.to_thread(shutil.rmtree, incoming)


def check_folder(data: Data, files: Sequence[RemoteFile], largest: int) -> int:
    """Return the total size of a folder; raise DataNotThere if it can't be brought."""
    if data.checksum:
        raise missing(data, "it is a folder, and a checksum is of a file")
    if len(files) > MOST_FILES:
        raise too_many(data)
    _check_names(data, files)
    total = sum(file.size for file in files)
    if largest and total > largest:
        raise missing(data, f"it has more than {largest} bytes, the most that is downloaded here")
    return total


def too_many(data: Data) -> DataNotThere:
    """Return the error that says that a folder has too many files."""
    return missing(data, f"it has more than {MOST_FILES} files; bring an archive of them instead")


def _check_names(data: Data, files: Sequence[RemoteFile]) -> None:
    """Raise DataNotThere if files would replace each other, as they may where names aren't paths (S3)."""
    paths: dict[PurePosixPath, str] = {}
    for file in files:
        path = safe_path(data, file.path)
        if path.parts[0] == INCOMING or any(len(os.fsencode(part)) > LONGEST_PART for part in path.parts):
            raise missing(data, f"it has a file whose name can't be used here: {file.path[:200]!r}")
        if paths.setdefault(path, file.path) != file.path:
            raise missing(data, f"two of its files would have the same name here: {str(path)[:200]!r}")
    folders = {folder for path in paths for folder in path.parents}
    if double := next((path for path in paths if path in folders), None):
        raise missing(data, f"it has a file and a folder of one name: {str(double)[:200]!r}")


def read_size(data: Data, text: str | None) -> int:
    """Read a size from a server's list; raise DataNotThere if it is none."""
    size = read_number(text or "0")
    if size is None:
        raise missing(data, f"the server's list has a size that is no number: {(text or '')[:40]!r}")
    return size


def safe_path(data: Data, path: str) -> PurePosixPath:
    """Return a path below a folder; raise DataNotThere if it leaves the folder or has control characters."""
    parts = PurePosixPath(path).parts
    if path.startswith("/") or ".." in parts or not parts or any(ord(letter) < 32 for letter in path):
        raise missing(data, f"it has a file whose name can't be used here: {path[:200]!r}")
    return PurePosixPath(*parts)


class Tally:
    """Adds up the progress of several files."""

    def __init__(self, total: int, progress: Progress) -> None:
        self._total, self._progress = total, progress
        self._done: dict[str, int] = {}
        self._sum = 0

    def of(self, path: str) -> Progress:
        """Return the progress callback for one file."""

        def tell(done: int, _: int | None) -> None:
            self._sum += done - self._done.get(path, 0)
            self._done[path] = done
            self._progress(self._sum, self._total)

        return tell
