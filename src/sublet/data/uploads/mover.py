"""The mover of uploads; that they belong to the requester was checked with the request."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.model.uploads import EXAMPLE, SCHEME, UploadedFile, split_upload
from sublet.data.uploads.area import UploadArea
from sublet.data.uploads.names import choose_files
from sublet.movers.arrival import check_checksum, guess, missing, refuse
from sublet.movers.file import SPEED, Copy
from sublet.movers.port import SIMPLE, Progress
from sublet.movers.trees import safe_path
from sublet.store.store import Store


@dataclass
class UploadMover:
    """Copies uploaded files into a session's directory."""

    store: Store
    area: UploadArea
    name: str = "upload"
    schemes: Sequence[str] = (SCHEME,)
    kinds: Sequence[str] = (SIMPLE,)

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the address or checksum."""
        reasons = check_checksum(data)
        if not split_upload(data.location)[0]:
            reasons.append(refuse(data, "It names no upload.", nearest=EXAMPLE))
        return reasons

    async def measure(self, data: Data) -> int | None:
        """Return the size, which is known since the request."""
        return data.size

    def estimate(self, data: Data) -> timedelta:
        """Guess how long the copy takes."""
        return guess(data, SPEED)

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Copy the files; raise DataNotThere if the upload was removed or is being changed."""
        files = await self._find(data)
        stop = threading.Event()
        try:
            await asyncio.to_thread(self._copy, data, files, target, progress, stop)
        finally:
            stop.set()

    async def _find(self, data: Data) -> list[tuple[UploadedFile, str]]:
        id, path = split_upload(data.location)
        upload, files = await self.store.read(lambda tx: (tx.uploads.get(id), tx.uploads.files(id)))
        if upload is None:
            raise missing(data, "the upload was removed, or its keep time was over")
        chosen = choose_files(files, path)
        if not chosen:
            raise missing(data, f"the upload {upload.name} has no such file any more")
        if any(not file.is_whole for file, _ in chosen):
            raise missing(data, f"the upload {upload.name} is being changed: some of it did not come whole yet")
        return chosen

    def _copy(
        self,
        data: Data,
        files: Sequence[tuple[UploadedFile, str]],
        target: Path,
        progress: Progress,
        stop: threading.Event,
    ) -> None:
        total = sum(file.size for file, _ in files)
        copy = Copy(data, lambda done, _: progress(done, total), stop)
        is_one = len(files) == 1
        if data.checksum and not is_one:
            raise missing(data, "it is a folder, and a checksum is of a file")
        for file, place in files:
            path = target / safe_path(data, place)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                copy.file(self.area.path(file.id), path, whole=is_one)
            except FileNotFoundError as error:
                raise missing(data, f"{file.path} was removed during the transfer") from error
            _restore(path, file)


def _restore(path: Path, file: UploadedFile) -> None:
    if file.is_executable:
        path.chmod(0o700)
    if file.modified:
        os.utime(path, (file.modified.timestamp(), file.modified.timestamp()))
