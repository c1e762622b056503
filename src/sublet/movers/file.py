"""The mover of files on this machine: `file:` addresses and absolute paths, copied."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.kernel.folders import LinkLeadsOut, walk
from sublet.kernel.ignore import Ignore
from sublet.kernel.part_names import name_part
from sublet.kernel.streams import closing
from sublet.movers.arrival import (
    READ,
    check_arrived,
    check_checksum,
    guess,
    missing,
    refuse,
    refuse_folder,
    require_sound,
    safe_name,
    unsent,
)
from sublet.movers.port import SIMPLE, Content, Policy, Progress, SourceChanged

SPEED = 200_000_000  # bytes per second, for a guess


class CopyStopped(Exception):
    """Nobody waits for the copy any more."""


@dataclass
class FileMover:
    """Copies files and directories of this machine."""

    policy: Policy
    name: str = "file"
    schemes: Sequence[str] = ("file",)

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the address or checksum."""
        reasons = check_checksum(data)
        if problem := _find_problem(data.location):
            why, nearest = problem
            reasons.append(refuse(data, f"{why[0].upper()}{why[1:]}.", nearest=nearest))
        elif not self._is_allowed(Path(os.path.normpath(self.path(data)))):
            allowed = self._list_roots()
            message = (
                f"Files are allowed from {allowed} only."
                if allowed
                else "Files of this machine are not allowed as data."
            )
            reasons.append(refuse(data, message, nearest=allowed or "an http(s): address"))
        return reasons

    def check_push(self, location: str) -> str:
        """Return why files may not be written there; empty if they may."""
        if problem := _find_problem(location):
            return problem[0]
        if self._is_allowed(Path(os.path.normpath(_path_of(location)))):
            return ""
        allowed = self._list_roots()
        return f"files may be sent to {allowed} only" if allowed else "no files may be written on this machine"

    async def push(self, content: Content, location: str, progress: Progress) -> str:
        """Write a file beside its target, and rename it when it is complete."""
        target = self.path(Data("", SIMPLE, location))
        if location.endswith("/"):
            target /= content.path
        part = target.with_name(name_part(target.name))
        try:
            if await asyncio.to_thread(target.is_dir):
                raise refuse_folder(content.path, location, str(target))
            target.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as writer:
                async with closing(content.read(0)) as pieces:
                    async for piece in pieces:
                        await asyncio.to_thread(writer.write, piece)
                        progress(writer.tell(), content.size)
                size = writer.tell()
            if size != content.size:
                raise unsent(content.path, location, f"it changed as it was read: {size} of {content.size} bytes came")
            part.replace(target)
        except OSError as error:
            raise unsent(content.path, location, error.strerror or str(error)) from error
        finally:
            with suppress(OSError):
                part.unlink()
        return str(target)

    def path(self, data: Data) -> Path:
        """Return the path that the location names."""
        return _path_of(data.location)

    def _list_roots(self) -> str:
        return ", ".join(map(str, self.policy.file_roots or ()))

    def _is_allowed(self, path: Path) -> bool:
        roots = self.policy.file_roots
        return roots is None or any(path.is_relative_to(root) for root in roots)

    async def measure(self, data: Data) -> int | None:
        """Return the size of a file; None for a directory, as adding it up would take too long."""
        return await asyncio.to_thread(self._size, self.path(data))

    def _size(self, path: Path) -> int | None:
        return path.stat().st_size if self._is_allowed(path) and path.is_file() else None

    def estimate(self, data: Data) -> timedelta:
        """Guess how long the copy takes."""
        return guess(data, SPEED)

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Copy data into the directory: a file under its own name, a directory's content as it is."""
        stop = threading.Event()
        try:
            await asyncio.to_thread(self._bring, data, target, progress, stop)
        finally:
            stop.set()

    def _bring(self, data: Data, target: Path, progress: Progress, stop: threading.Event) -> None:
        try:
            source = self._find_source(data)
            copy = Copy(data, progress, stop)
            if source.is_dir():
                copy.tree(source, target)
            else:
                copy.file(source, target / safe_name(source.name), whole=True)
        except (FileNotFoundError, NotADirectoryError, PermissionError, IsADirectoryError, RuntimeError) as error:
            raise missing(data, getattr(error, "strerror", None) or str(error)) from error

    async def links(self, data: Data) -> LinkedFiles:
        """Link the file, or all files of a directory that aren't ignored."""
        try:
            return await asyncio.to_thread(self._link, data)
        except (OSError, RuntimeError) as error:
            raise missing(data, getattr(error, "strerror", None) or str(error)) from error

    def _link(self, data: Data) -> LinkedFiles:
        source = self._find_source(data)
        if not source.is_dir():
            return LinkedFiles([_describe_file(data, str(source), safe_name(source.name), data.checksum)])
        if data.checksum:
            raise missing(data, "it is a directory, and a checksum is of a file")
        try:
            entries = list(walk(str(source), Ignore(data.fields.get("ignore", ()))))
        except LinkLeadsOut as error:
            raise missing(data, str(error)) from error
        files = [_describe_file(data, entry.source, entry.path) for entry in entries if not entry.is_folder]
        holders = {entry.path.rpartition("/")[0] for entry in entries}
        empty = [entry.path for entry in entries if entry.is_folder and entry.path not in holders]
        return LinkedFiles(files, is_folder=True, folders=empty)

    async def read(self, data: Data, link: FileLink, offset: int) -> AsyncIterator[bytes]:
        """Read a linked file from a byte offset on."""
        path = unquote(urlsplit(link.url).path, errors="surrogateescape")
        try:
            while piece := await asyncio.to_thread(_read_piece, data, link, path, offset):
                yield piece
                offset += len(piece)
                if offset == link.size:
                    return
        except OSError as error:
            raise missing(data, error.strerror or str(error)) from error

    def _find_source(self, data: Data) -> Path:
        """Return the resolved path of the location; raise DataNotThere if files from there aren't allowed."""
        require_sound(data, self.check(data))
        source = self.path(data).resolve(strict=True)
        if not self._is_allowed(source):
            raise missing(data, f"it leads to {source}, and files from there are not allowed")
        return source


def _path_of(location: str) -> Path:
    return Path(location) if location[:5].lower() != "file:" else Path(unquote(urlsplit(location).path))


def _find_problem(location: str) -> tuple[str, str] | None:
    """Return why a location names no file, and a location that would; None if it is fine."""
    address = urlsplit(location)
    if address.netloc not in ("", "localhost"):
        return "a file: address names a file of this machine, not of another", f"file://{address.path}"
    path = _path_of(location)
    if not path.is_absolute() or "\0" in str(path):
        return "a file is named by its whole path, from / on", "file:///home/me/cube.fits"
    return None


def _read_piece(data: Data, link: FileLink, path: str, offset: int) -> bytes:
    """Read a part of a file; raise SourceChanged if the file isn't the one that was linked."""
    if _describe_file(data, path, link.path).version != link.version:
        raise SourceChanged(f"{path} changed while it was read")
    with open(path, "rb", buffering=0) as reader:
        reader.seek(offset)
        return reader.read(READ) or b""


def _describe_file(data: Data, path: str, name: str, checksum: str = "") -> FileLink:
    state = os.stat(path)
    if not stat.S_ISREG(state.st_mode):
        raise missing(data, f"{path} is not a file or directory")
    version = f"{state.st_ino} {state.st_mtime_ns}"
    is_executable = bool(state.st_mode & stat.S_IXUSR)
    address = f"file://{quote(path, errors='surrogateescape')}"
    return FileLink(name, address, {}, state.st_size, checksum, version, is_executable=is_executable)


class Copy:
    """A copy in progress."""

    def __init__(self, data: Data, progress: Progress, stop: threading.Event) -> None:
        """Remember what to copy; nothing is copied yet."""
        self.data = data
        self.progress = progress
        self.stop = stop
        self.done = 0

    def tree(self, source: Path, target: Path) -> None:
        """Copy a directory without ignored files; a link inside it is copied as its target."""
        if self.data.checksum:
            raise missing(self.data, "it is a directory, and a checksum is of a file")
        try:
            for entry in walk(str(source), Ignore(self.data.fields.get("ignore", ())), without=str(target)):
                if entry.is_folder:
                    (target / entry.path).mkdir(parents=True, exist_ok=True)
                else:
                    self.file(Path(entry.source), target / entry.path)
        except LinkLeadsOut as error:
            raise missing(self.data, str(error)) from error

    def file(self, source: Path, target: Path, whole: bool = False) -> None:
        """Copy one file by way of a part file; special files are refused."""
        part = target.with_name(name_part(target.name))
        opened = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(opened, "rb") as reader:
            status = os.fstat(reader.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise missing(self.data, f"{source} is not a file or directory")
            with part.open("wb") as writer:
                while piece := reader.read(READ):
                    if self.stop.is_set():
                        raise CopyStopped
                    writer.write(piece)
                    self.done += len(piece)
                    self.progress(self.done, status.st_size if whole else self.data.size)
        shutil.copystat(source, part)
        if whole:
            check_arrived(self.data, part)
        part.chmod(stat.S_IMODE(status.st_mode) & 0o755 | 0o600)
        part.rename(target)
