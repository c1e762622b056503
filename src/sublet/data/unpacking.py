"""Unpacking archives that were brought: nothing leads out, nothing grows without bound, all of it or nothing."""

from __future__ import annotations

import os
import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO
from uuid import uuid4

from sublet.booking.model.request import Data
from sublet.kernel.errors import DataNotThere
from sublet.movers.arrival import missing
from sublet.movers.trees import safe_path

MOST_ENTRIES = 100_000
RATIO = 200  # bytes for each byte of the archive
ALWAYS = 256 << 20  # bytes that any archive may have, however small it is
READ = 1 << 20
LONGEST_LINK = 4096
ZSTANDARD = b"\x28\xb5\x2f\xfd"
BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, zipfile.LargeZipFile, EOFError),
    *(NotImplementedError, RuntimeError, ValueError, OSError),
)


@dataclass(frozen=True)
class ArchiveEntry:
    """A file, a folder or a link of an archive."""

    path: str
    mode: int = 0o644
    is_folder: bool = False
    link: str | None = None  # what it leads to: from its own folder, or of a hard link from the top on
    is_hard: bool = False


@dataclass
class Unpacker:
    """One archive on its way into a folder."""

    data: Data
    top: Path
    limit: int  # bytes
    entries: int = 0
    size: int = 0
    links: list[ArchiveEntry] = field(default_factory=list)

    def add(self, entry: ArchiveEntry, content: IO[bytes] | None) -> None:
        """Make a file or a folder; links are made when all files are there."""
        self.entries += 1
        if self.entries > MOST_ENTRIES:
            raise missing(self.data, f"the archive has more than {MOST_ENTRIES} files")
        place = self._find_place(entry.path)
        if entry.link is not None:
            self.links.append(entry)
        elif entry.is_folder:
            self._make_folder(place)
        elif content is not None:
            self._write(place, entry, content)

    def _find_place(self, path: str) -> Path:
        plain = path.removeprefix("./").rstrip("/")
        return self.top if plain in ("", ".") else self.top / safe_path(self.data, plain)

    def _make_folder(self, place: Path) -> None:
        try:
            place.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise missing(self.data, f"the archive has a file and a folder of one name: {place.name!r}") from error

    def _write(self, place: Path, entry: ArchiveEntry, content: IO[bytes]) -> None:
        self._make_folder(place.parent)
        if place.is_dir():
            raise missing(self.data, f"the archive has a file and a folder of one name: {place.name!r}")
        place.unlink(missing_ok=True)  # a later file of the same name counts
        with place.open("xb") as writer:
            while piece := content.read(READ):
                self._count(len(piece))
                writer.write(piece)
        place.chmod(entry.mode & 0o755 | 0o600)

    def _count(self, size: int) -> None:
        self.size += size
        if self.size > self.limit:
            raise missing(self.data, f"unpacked it has more than {self.limit} bytes, the most of such an archive")

    def make_links(self) -> None:
        """Make each link as another name of the file that it leads to, so that no link is left that could lead out."""
        waiting = list(self.links)
        while waiting:
            later = [entry for entry in waiting if not self._make_link(entry)]
            if len(later) == len(waiting):
                entry = later[0]
                target = str(entry.link)[:200]
                why = f"the link {entry.path[:200]!r} leads to {target!r}, which is no file of the archive"
                raise missing(self.data, why)
            waiting = later

    def _make_link(self, entry: ArchiveEntry) -> bool:
        """Whether its file is there by now; DataNotThere if it leads out of the archive."""
        above = "" if entry.is_hard else os.path.dirname(entry.path)
        target = os.path.normpath(os.path.join(above, entry.link or ""))
        if target.startswith(("/", "../")) or target == ".." or "\0" in target:
            raise missing(self.data, f"the link {entry.path[:200]!r} leads out of the archive, to {entry.link!r}"[:600])
        source, place = self.top / PurePosixPath(target), self._find_place(entry.path)
        if not source.is_file():
            return False
        self._make_folder(place.parent)
        self._count(source.stat().st_size)  # it is a file of its own where it is sent to
        place.unlink(missing_ok=True)
        os.link(source, place)
        return True


def unpack_brought(data: Data, folder: Path) -> None:
    """Put the content of the one archive in a folder in its place; DataNotThere says why that can't be, or may not."""
    files = [file for file in folder.iterdir() if file.is_file()]
    if len(files) != 1 or len(list(folder.iterdir())) != 1:
        raise missing(data, "it is not one archive that could be unpacked")
    archive, part = files[0], folder.with_name(f"{folder.name}.{uuid4().hex[:8]}.part")
    try:
        _unpack(data, archive, part)
        shutil.rmtree(folder)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _unpack(data: Data, archive: Path, top: Path) -> None:
    size = archive.stat().st_size
    room = shutil.disk_usage(archive.parent).free
    unpacker = Unpacker(data, top, min(max(size * RATIO, ALWAYS), room))
    top.mkdir(mode=0o700)
    try:
        with ExitStack() as stack:
            for entry, content in _read_archive(data, archive, stack):
                unpacker.add(entry, content)
            unpacker.make_links()
    except DataNotThere:
        raise
    except BROKEN as error:
        raise missing(data, f"it can't be unpacked: {str(error) or type(error).__name__}") from error
    if not unpacker.entries:
        raise missing(data, "there is nothing in the archive")


def _read_archive(data: Data, archive: Path, stack: ExitStack) -> Iterator[tuple[ArchiveEntry, IO[bytes] | None]]:
    if zipfile.is_zipfile(archive) and not tarfile.is_tarfile(archive):
        return _read_zip(data, stack.enter_context(zipfile.ZipFile(archive)))
    with archive.open("rb") as reader:
        is_zstandard = reader.read(4) == ZSTANDARD
    try:
        return _read_tar(data, stack.enter_context(tarfile.open(archive, "r:*")))
    except tarfile.ReadError as error:
        why = "it is no archive that can be unpacked here: tar (also .gz, .bz2, .xz) or zip"
        why = "the service's Python reads no zstd archives; use .tar.gz or .tar.xz" if is_zstandard else why
        raise missing(data, why) from error


def _read_tar(data: Data, tar: tarfile.TarFile) -> Iterator[tuple[ArchiveEntry, IO[bytes] | None]]:
    for member in tar:
        if member.isdir():
            yield ArchiveEntry(member.name, is_folder=True), None
        elif member.issym() or member.islnk():
            yield ArchiveEntry(member.name, link=member.linkname, is_hard=member.islnk()), None
        elif member.isfile():
            yield ArchiveEntry(member.name, member.mode), tar.extractfile(member)
        else:
            raise missing(data, f"{member.name[:200]!r} in the archive is neither a file, a folder nor a link")


def _read_zip(data: Data, archive: zipfile.ZipFile) -> Iterator[tuple[ArchiveEntry, IO[bytes] | None]]:
    for info in archive.infolist():
        mode = info.external_attr >> 16
        kind = stat.S_IFMT(mode)
        if info.flag_bits & 1:
            raise missing(data, "the archive is encrypted")
        if info.is_dir():
            yield ArchiveEntry(info.filename, is_folder=True), None
        elif kind == stat.S_IFLNK:
            with archive.open(info) as content:
                link = content.read(LONGEST_LINK).decode("utf-8", "replace")
            yield ArchiveEntry(info.filename, link=link), None
        elif kind in (0, stat.S_IFREG):
            with archive.open(info) as content:
                yield ArchiveEntry(info.filename, mode or 0o644), content
        else:
            raise missing(data, f"{info.filename[:200]!r} in the archive is neither a file, a folder nor a link")
