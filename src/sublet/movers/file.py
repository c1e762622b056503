"""Data that is on this machine already: `file:` addresses and absolute paths, copied."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.kernel.folders import LinkLeadsOut, walk
from sublet.kernel.ignore import Ignore
from sublet.movers.arrival import READ, check_arrived, check_checksum, guess, missing, refuse, safe_name, unsent
from sublet.movers.port import SIMPLE, Content, Policy, Progress

SPEED = 200_000_000  # bytes a second, for a guess


class CopyStopped(Exception):
    """Nobody waits for the copy any more."""


@dataclass
class FileMover:
    """Copies files and directories of this machine."""

    policy: Policy
    name: str = "file"
    schemes: Sequence[str] = ("file",)

    def check(self, data: Data) -> Sequence[Reason]:
        """What is wrong with its address or checksum."""
        reasons = check_checksum(data)
        if problem := _find_problem(data.location):
            why, nearest = problem
            reasons.append(refuse(data, f"{why[0].upper()}{why[1:]}.", nearest=nearest))
        elif not self._is_allowed(Path(os.path.normpath(self.path(data)))):
            allowed = self._list_roots()
            message = (
                f"Files may be brought from {allowed} only." if allowed else "No files of this machine may be brought."
            )
            reasons.append(refuse(data, message, nearest=allowed or "an http(s): address"))
        return reasons

    def check_push(self, location: str) -> str:
        """Whether files may be written there."""
        if problem := _find_problem(location):
            return problem[0]
        if self._is_allowed(Path(os.path.normpath(_path_of(location)))):
            return ""
        allowed = self._list_roots()
        return f"files may be sent to {allowed} only" if allowed else "no files may be written on this machine"

    async def push(self, content: Content, location: str, progress: Progress) -> str:
        """Write it beside its place, and put it there when it is whole."""
        target = self.path(Data("", SIMPLE, location))
        if location.endswith("/"):
            target /= content.path
        part = target.with_name(f"{target.name}.part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as writer:
                async for piece in content.read(0):
                    await asyncio.to_thread(writer.write, piece)
                    progress(writer.tell(), content.size)
                size = writer.tell()
            if size != content.size:
                raise unsent(content.path, location, f"it changed as it was read: {size} of {content.size} bytes came")
            part.replace(target)
        except OSError as error:
            raise unsent(content.path, location, error.strerror or str(error)) from error
        finally:
            part.unlink(missing_ok=True)
        return str(target)

    def path(self, data: Data) -> Path:
        """The path that the location names."""
        return _path_of(data.location)

    def _list_roots(self) -> str:
        return ", ".join(map(str, self.policy.file_roots or ()))

    def _is_allowed(self, path: Path) -> bool:
        roots = self.policy.file_roots
        return roots is None or any(path.is_relative_to(root) for root in roots)

    async def measure(self, data: Data) -> int | None:
        """The size of a file; a directory would take too long to add up."""
        return await asyncio.to_thread(self._size, self.path(data))

    def _size(self, path: Path) -> int | None:
        return path.stat().st_size if self._is_allowed(path) and path.is_file() else None

    def estimate(self, data: Data) -> timedelta:
        """How long the copy is going to take."""
        return guess(data, SPEED)

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Copy it into the directory: a file under its own name, a directory's content as it is."""
        stop = threading.Event()
        try:
            await asyncio.to_thread(self._bring, data, target, progress, stop)
        finally:
            stop.set()

    def _bring(self, data: Data, target: Path, progress: Progress, stop: threading.Event) -> None:
        for reason in self.check(data):
            raise missing(data, reason.message)
        try:
            source = self.path(data).resolve(strict=True)
            if not self._is_allowed(source):
                raise missing(data, f"it leads to {source}, from where no files may be brought")
            copy = Copy(data, progress, stop)
            if source.is_dir():
                copy.tree(source, target)
            else:
                copy.file(source, target / safe_name(source.name), whole=True)
        except (FileNotFoundError, NotADirectoryError, PermissionError, IsADirectoryError, RuntimeError) as error:
            raise missing(data, getattr(error, "strerror", None) or str(error)) from error


def _path_of(location: str) -> Path:
    return Path(location) if location[:5].lower() != "file:" else Path(unquote(urlsplit(location).path))


def _find_problem(location: str) -> tuple[str, str] | None:
    """Why a location names no file, and what would."""
    address = urlsplit(location)
    if address.netloc not in ("", "localhost"):
        return "a file: address names a file of this machine, not of another", f"file://{address.path}"
    path = _path_of(location)
    if not path.is_absolute() or "\0" in str(path):
        return "a file is named by its whole path, from / on", "file:///home/me/cube.fits"
    return None


class Copy:
    """One copy under way."""

    def __init__(self, data: Data, progress: Progress, stop: threading.Event) -> None:
        """Nothing is copied yet."""
        self.data = data
        self.progress = progress
        self.stop = stop
        self.done = 0

    def tree(self, source: Path, target: Path) -> None:
        """Copy a directory without what is ignored; a link is copied as what it leads to, if that is inside."""
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
        part = target.with_name(f"{target.name}.part")
        opened = os.open(source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(opened, "rb") as reader:
            found = os.fstat(reader.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise missing(self.data, f"{source} is not a file or directory")
            with part.open("wb") as writer:
                while piece := reader.read(READ):
                    if self.stop.is_set():
                        raise CopyStopped
                    writer.write(piece)
                    self.done += len(piece)
                    self.progress(self.done, found.st_size if whole else self.data.size)
        shutil.copystat(source, part)
        if whole:
            check_arrived(self.data, part)
        part.chmod(stat.S_IMODE(found.st_mode) & 0o755 | 0o600)
        part.rename(target)
