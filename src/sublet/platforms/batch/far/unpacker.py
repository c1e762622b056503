"""Unpacks archives safely: no path leads outside, and the size is limited. It runs here, and is sent to systems.

There it needs Python 3.8 and nothing else. Its arguments are an archive, the folder to create, and a heartbeat file to
touch meanwhile. It exits with 65 and a message if an archive can't or may not be unpacked.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import stat
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

REFUSED = 65
BEAT = 2.0  # seconds between heartbeats
MOST_ENTRIES = 100_000
RATIO = 200  # unpacked bytes per byte of the archive
ALWAYS = 256 << 20  # bytes that any archive may unpack to, however small it is
READ = 1 << 18
LONGEST_LINK = 4096
MOST_DIRECTORY = 64 << 20  # bytes of a zip archive's directory, which is read into memory
DIRECTORY_ENTRY = b"PK\1\2"
ZSTANDARD = b"\x28\xb5\x2f\xfd"
COMPRESSED = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\0", lzma.open), (b"\x5d\0\0", lzma.open))
ZIPPED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others are unpacked by zipfile without a limit of memory
BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError, EOFError),
    *(NotImplementedError, RuntimeError, ValueError),
)


class UnpackRefused(Exception):
    """An archive can't be unpacked, or may not: the words say why."""


def find_safe_path(path: str) -> PurePosixPath:
    """Return a path as relative and safe; raise UnpackRefused if it leads outside or has control characters."""
    parts = PurePosixPath(path).parts
    if path.startswith("/") or ".." in parts or not parts or any(ord(letter) < 32 for letter in path):
        raise UnpackRefused(f"it has a file whose name can't be used here: {path[:200]!r}")
    return PurePosixPath(*parts)


@dataclass(frozen=True)
class ArchiveEntry:
    """A file, a folder or a link of an archive."""

    path: str
    mode: int = 0o644
    is_folder: bool = False
    link: str | None = None  # the link's target: relative to its own folder, or for a hard link to the top
    is_hard: bool = False


@dataclass
class Unpacker:
    """One archive that is being unpacked into a folder."""

    top: Path
    limit: int  # bytes
    entries: int = 0
    size: int = 0
    links: list[ArchiveEntry] = field(default_factory=list)

    def add(self, entry: ArchiveEntry, content: IO[bytes] | None) -> None:
        """Make a file or folder; links are made once all files exist."""
        self.entries += 1
        if self.entries > MOST_ENTRIES:
            raise UnpackRefused(f"the archive has more than {MOST_ENTRIES} files")
        place = self._find_place(entry.path)
        if entry.link is not None:
            self.links.append(entry)
        elif entry.is_folder:
            self._make_folder(place)
        elif content is not None:
            self._write(place, entry, content)

    def _find_place(self, path: str) -> Path:
        plain = (path[2:] if path.startswith("./") else path).rstrip("/")
        return self.top if plain in ("", ".") else self.top / find_safe_path(plain)

    def _make_folder(self, place: Path) -> None:
        try:
            place.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise UnpackRefused(f"the archive has a file and a folder of one name: {place.name!r}") from error

    def _write(self, place: Path, entry: ArchiveEntry, content: IO[bytes]) -> None:
        self._make_folder(place.parent)
        if place.is_dir():
            raise UnpackRefused(f"the archive has a file and a folder of one name: {place.name!r}")
        place.unlink(missing_ok=True)  # a later file of the same name wins
        with place.open("xb") as writer:
            while piece := content.read(READ):
                self._count(len(piece))
                writer.write(piece)
        place.chmod(entry.mode & 0o755 | 0o600)

    def _count(self, size: int) -> None:
        self.size += size
        if self.size > self.limit:
            raise UnpackRefused(f"unpacked it has more than {self.limit} bytes, the most of such an archive")

    def make_links(self) -> None:
        """Make each link as a hard link to its target, so that no link remains that could lead outside."""
        waiting = list(self.links)
        while waiting:
            later = [entry for entry in waiting if not self._make_link(entry)]
            if len(later) == len(waiting):
                entry = later[0]
                target = str(entry.link)[:200]
                why = f"the link {entry.path[:200]!r} leads to {target!r}, which is no file of the archive"
                raise UnpackRefused(why)
            waiting = later

    def _make_link(self, entry: ArchiveEntry) -> bool:
        """Make a link if its target exists, and return whether it did; raise UnpackRefused if it leads outside."""
        above = "" if entry.is_hard else os.path.dirname(entry.path)
        target = os.path.normpath(os.path.join(above, entry.link or ""))
        if target.startswith(("/", "../")) or target == ".." or "\0" in target:
            raise UnpackRefused(f"the link {entry.path[:200]!r} leads out of the archive, to {entry.link!r}"[:600])
        source, place = self.top / PurePosixPath(target), self._find_place(entry.path)
        if not source.is_file():
            return False
        self._make_folder(place.parent)
        self._count(source.stat().st_size)  # it becomes a separate file when it is sent
        place.unlink(missing_ok=True)
        os.link(source, place)
        return True


def unpack(archive: Path, top: Path, tell: Callable[[], None] = lambda: None) -> None:
    """Unpack an archive into a new folder, calling `tell` after each entry.

    Raise UnpackRefused if it can't or may not be.
    """
    size = archive.stat().st_size
    room = shutil.disk_usage(archive.parent).free
    unpacker = Unpacker(top, min(max(size * RATIO, ALWAYS), room))
    top.mkdir(mode=0o700)
    try:
        with ExitStack() as stack:
            for entry, content in _read_archive(archive, stack):
                unpacker.add(entry, content)
                tell()
            unpacker.make_links()
    except UnpackRefused:
        raise
    except BROKEN as error:
        raise UnpackRefused(f"it can't be unpacked: {str(error) or type(error).__name__}") from error
    except OSError as error:  # its words without the path, which is ours
        raise UnpackRefused(f"it can't be unpacked: {error.strerror or str(error) or type(error).__name__}") from error
    if not unpacker.entries:
        raise UnpackRefused("there is nothing in the archive")


class SmallReads:
    """The bytes of a tar archive, never many at once: tarfile reads a whole header, which may claim to be gigabytes."""

    def __init__(self, stream: Any) -> None:
        """Read from a seekable stream."""
        self.stream, self.seek, self.tell = stream, stream.seek, stream.tell
        self.last = b""  # what was read last

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes; raise UnpackRefused if they are too many."""
        if not 0 <= size <= READ:
            raise UnpackRefused("the archive has a header that is too large")
        self.last = self.stream.read(size)
        return self.last


class DirectoryReads:
    """The bytes of a zip archive: zipfile reads its directory whole, and makes an object of each of its entries."""

    def __init__(self, stream: Any) -> None:
        """Read from a seekable stream."""
        self.stream, self.seek, self.tell, self.seekable = stream, stream.seek, stream.tell, stream.seekable

    def read(self, size: int = -1) -> bytes:
        """Read so many bytes; raise UnpackRefused if they are a directory of too many files."""
        if size > MOST_DIRECTORY:
            raise UnpackRefused(f"the archive's directory has more than {MOST_DIRECTORY} bytes")
        piece: bytes = self.stream.read(size if size >= 0 else READ)
        if len(piece) > READ and piece.count(DIRECTORY_ENTRY) > MOST_ENTRIES:
            raise UnpackRefused(f"the archive has more than {MOST_ENTRIES} files")
        return piece


def _read_archive(archive: Path, stack: ExitStack) -> Iterator[tuple[ArchiveEntry, IO[bytes] | None]]:
    with archive.open("rb") as reader:
        start = reader.read(8)
    opens = next((opens for magic, opens in COMPRESSED if start.startswith(magic)), open)
    stream = SmallReads(stack.enter_context(opens(archive, "rb")))
    try:
        return _read_tar(stack.enter_context(tarfile.TarFile(fileobj=cast("IO[bytes]", stream))), stream)
    except tarfile.ReadError as error:
        if zipfile.is_zipfile(archive):
            directory = DirectoryReads(stack.enter_context(archive.open("rb")))
            return _read_zip(stack.enter_context(zipfile.ZipFile(cast("IO[bytes]", directory))))
        why = "it is no archive that can be unpacked here: tar (also .gz, .bz2, .xz) or zip"
        why = "this machine's Python reads no zstd archives; use .tar.gz or .tar.xz" if start[:4] == ZSTANDARD else why
        raise UnpackRefused(why) from error


def _read_tar(tar: tarfile.TarFile, stream: SmallReads) -> Iterator[tuple[ArchiveEntry, IO[bytes] | None]]:
    while (member := tar.next()) is not None:
        if member.isdir():
            yield ArchiveEntry(member.name, is_folder=True), None
        elif member.issym() or member.islnk():
            yield ArchiveEntry(member.name, link=member.linkname, is_hard=member.islnk()), None
        elif member.isfile():
            yield ArchiveEntry(member.name, member.mode), tar.extractfile(member)
        else:
            raise UnpackRefused(f"{member.name[:200]!r} in the archive is neither a file, a folder nor a link")
        kept: Any = tar
        kept.members.clear()  # or else all headers stay in memory
        kept.pax_headers.clear()
    if stream.last.strip(b"\0"):  # no end, but a header that tarfile can't read: it stops there without an error
        raise UnpackRefused(f"the archive is damaged after {tar.offset} bytes")
    behind = 0
    while piece := stream.read(READ):  # to the very end, where a compressed file's checksum is
        behind += len(piece)
        if behind > ALWAYS:
            raise UnpackRefused(f"the archive has more than {ALWAYS} bytes behind its end")


def _read_zip(archive: zipfile.ZipFile) -> Iterator[tuple[ArchiveEntry, IO[bytes] | None]]:
    for info in archive.infolist():
        mode = info.external_attr >> 16
        kind = stat.S_IFMT(mode)
        if info.flag_bits & 1:
            raise UnpackRefused("the archive is encrypted")
        if info.compress_type not in ZIPPED:
            raise UnpackRefused(f"{info.filename[:200]!r} in the archive is compressed in a way other than deflate")
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
            raise UnpackRefused(f"{info.filename[:200]!r} in the archive is neither a file, a folder nor a link")


class Beating:
    """Touches a heartbeat file every few seconds."""

    def __init__(self, file: str) -> None:
        """Set the file to touch."""
        self.file, self.last = file, 0.0

    def __call__(self) -> None:
        """Touch the file, unless that was done a moment ago."""
        if time.monotonic() - self.last > BEAT:
            self.last = time.monotonic()
            with open(self.file, "w"):
                pass


def main(archive: str, top: str, beat: str) -> int:
    """Unpack an archive completely or not at all, and return the exit code."""
    os.umask(0o077)
    shutil.rmtree(top, ignore_errors=True)
    try:
        unpack(Path(archive), Path(top), Beating(beat))
    except UnpackRefused as refused:
        shutil.rmtree(top, ignore_errors=True)
        sys.stderr.write(f"{refused}\n")
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
