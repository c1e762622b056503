"""Where the bytes of uploads lie: one file for each, written on from its end, by one writer at a time."""

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
UNCHECKED = ".unchecked"  # beside a file: from this byte on nobody has compared it with its checksum yet
ALGORITHMS = ("sha1", "sha256", "md5")
ID = re.compile(r"[0-9a-f-]{36}")


@dataclass(frozen=True, slots=True)
class ChunkChecksum:
    """What a piece that is sent has to add up to."""

    algorithm: str
    digest: bytes


class UploadArea:
    """The directory with the content of all uploads, by the files' ids."""

    def __init__(self, root: Path) -> None:
        """It is made when something comes."""
        self.root = root

    def path(self, id: str) -> Path:
        """Where the bytes of a file are."""
        return self.root / id[:2] / id

    def offset(self, id: str) -> int:
        """How many bytes of it are here and can be relied on."""
        try:
            size = self.path(id).stat().st_size
        except FileNotFoundError:
            return 0
        return min(size, _read_mark(_mark_of(self.path(id)), size))

    def open(self, id: str, offset: int, checksum: ChunkChecksum | None = None) -> PartWriter:
        """Go on with a file; UploadBusy if somebody does so already, WrongOffset if that is not where it stopped."""
        path = self.path(id)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _lock(descriptor)
            there = self.offset(id)
            if there != offset:
                raise WrongOffset(offset=there, wanted=offset)
            os.ftruncate(descriptor, offset)  # what came unchecked before a crash
            _mark_of(path).unlink(missing_ok=True)
            if checksum:
                _mark_of(path).write_text(str(offset))
            os.lseek(descriptor, offset, os.SEEK_SET)
        except BaseException:
            os.close(descriptor)
            raise
        return PartWriter(path, descriptor, offset, checksum)

    def remove(self, ids: Iterable[str]) -> None:
        """Let go of the bytes of these."""
        for id in ids:
            self.path(id).unlink(missing_ok=True)
            _mark_of(self.path(id)).unlink(missing_ok=True)

    def ids(self) -> Iterator[str]:
        """The files that there are bytes of."""
        for folder in sorted(self.root.glob("??")):
            names = {entry.removesuffix(UNCHECKED) for entry in os.listdir(folder)}
            yield from (name for name in sorted(names) if ID.fullmatch(name))


class PartWriter:
    """Writes a file on from where it stopped."""

    def __init__(self, path: Path, descriptor: int, offset: int, checksum: ChunkChecksum | None) -> None:
        """The descriptor is locked, and at its end."""
        self._path, self._descriptor, self._begin, self._checksum = path, descriptor, offset, checksum
        self._digest = hashlib.new(checksum.algorithm, usedforsecurity=False) if checksum else None
        self.offset = offset

    def write(self, data: bytes) -> None:
        """Add this; of what a full disk takes in part, that part is kept."""
        view = memoryview(data)
        while view:
            count = os.write(self._descriptor, view)
            if self._digest:
                self._digest.update(view[:count])
            self.offset += count
            view = view[count:]

    def finish(self) -> None:
        """All of this piece came: it stays, if it is what it should be; else WrongChecksum, and it goes."""
        if self._checksum and self._digest and self._digest.digest() != self._checksum.digest:
            raise WrongChecksum
        os.fsync(self._descriptor)
        _mark_of(self._path).unlink(missing_ok=True)

    def close(self) -> None:
        """Let others write; a piece with a checksum that did not come whole goes."""
        if _mark_of(self._path).exists():
            os.ftruncate(self._descriptor, self._begin)
            _mark_of(self._path).unlink(missing_ok=True)
            self.offset = self._begin
        os.close(self._descriptor)


def check_algorithm(algorithm: str) -> str:
    """The name of a checksum that can be compared; BadUpload if it is of another kind."""
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
