"""Where the bytes of uploads are stored: one file for each, appended to by one writer at a time."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sublet.kernel.errors import BadUpload, UploadBusy, WrongChecksum, WrongOffset

FOLDER = "uploads"  # below SUBLET_HOME
UNCHECKED = ".unchecked"  # beside a file: from this byte on its checksum isn't verified yet
ALGORITHMS = ("sha1", "sha256", "md5")
ID = re.compile(r"[0-9a-f-]{36}")


@dataclass(frozen=True, slots=True)
class ChunkChecksum:
    """The checksum that a piece must have."""

    algorithm: str
    digest: bytes


class UploadArea:
    """The directory with the content of all uploads, by file id."""

    def __init__(self, root: Path) -> None:
        """Remember the directory; it is made when the first file comes."""
        self.root = root

    def path(self, id: str) -> Path:
        """Return where a file's bytes are."""
        return self.root / id[:2] / id

    def offset(self, id: str) -> int:
        """Return how many bytes of a file are here and verified."""
        try:
            size = self.path(id).stat().st_size
        except FileNotFoundError:
            return 0
        return min(size, _read_mark(_mark_of(self.path(id)), size))

    def open(self, id: str, offset: int, checksum: ChunkChecksum | None = None) -> PartWriter:
        """Open a file for appending; raise UploadBusy if another writer has it, WrongOffset if it ends elsewhere."""
        path = self.path(id)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(descriptor)
            there = self.offset(id)
            if there != offset:
                raise WrongOffset(offset=there, wanted=offset)
            os.ftruncate(descriptor, offset)  # unverified bytes from before a crash
            _mark_of(path).unlink(missing_ok=True)
            if checksum:
                _mark_of(path).write_text(str(offset))
            os.lseek(descriptor, offset, os.SEEK_SET)
        except BaseException:
            os.close(descriptor)
            raise
        return PartWriter(path, descriptor, offset, checksum)

    def remove(self, ids: Iterable[str]) -> None:
        """Delete the bytes of these files."""
        for id in ids:
            self.path(id).unlink(missing_ok=True)
            _mark_of(self.path(id)).unlink(missing_ok=True)

    def ids(self) -> Iterator[str]:
        """Yield the ids of all files that have bytes here."""
        for folder in sorted(self.root.glob("??")):
            names = {entry.removesuffix(UNCHECKED) for entry in os.listdir(folder)}
            yield from (name for name in sorted(names) if ID.fullmatch(name))


class PartWriter:
    """Appends to a file."""

    def __init__(self, path: Path, descriptor: int, offset: int, checksum: ChunkChecksum | None) -> None:
        """Take a locked descriptor that is positioned at the file's end."""
        self._path, self._descriptor, self._begin, self._checksum = path, descriptor, offset, checksum
        self._digest = hashlib.new(checksum.algorithm, usedforsecurity=False) if checksum else None
        self.offset = offset

    def write(self, data: bytes) -> None:
        """Append bytes; if the disk fills up, keep the part that was written."""
        view = memoryview(data)
        while view:
            count = os.write(self._descriptor, view)
            if self._digest:
                self._digest.update(view[:count])
            self.offset += count
            view = view[count:]

    def finish(self) -> None:
        """Make the piece permanent, or raise WrongChecksum if its checksum differs."""
        if self._checksum and self._digest and self._digest.digest() != self._checksum.digest:
            raise WrongChecksum
        os.fsync(self._descriptor)
        _mark_of(self._path).unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock, and drop a piece whose checksum wasn't verified."""
        if _mark_of(self._path).exists():
            os.ftruncate(self._descriptor, self._begin)
            _mark_of(self._path).unlink(missing_ok=True)
            self.offset = self._begin
        os.close(self._descriptor)


def check_algorithm(algorithm: str) -> str:
    """Return the checksum algorithm; raise BadUpload if it isn't supported."""
    if algorithm not in ALGORITHMS:
        raise BadUpload(why=f"checksums by {algorithm[:30]!r} can't be compared; send {', '.join(ALGORITHMS)}.")
    return algorithm


def _mark_of(path: Path) -> Path:
    return path.with_name(f"{path.name}{UNCHECKED}")


def _read_mark(mark: Path, otherwise: int) -> int:
    try:
        return int(mark.read_text() or 0)
    except FileNotFoundError:
        return otherwise


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UploadBusy from None
