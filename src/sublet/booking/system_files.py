"""Files on a system that a person has signed in to: `ssh://SYSTEM/PATH`, over the open login."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from pathlib import Path, PurePosixPath
from posixpath import basename, join
from urllib.parse import unquote, urlsplit

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.booking.platforms.known import KnownPlatforms
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.kernel.errors import NotFound, PlatformRefused, PlatformUnreachable, SubletError
from sublet.movers.arrival import (
    check_arrived,
    check_place,
    guess,
    missing,
    refuse_folder,
    require_sound,
    safe_name,
    unsent,
)
from sublet.movers.port import (
    SIMPLE,
    UNLIMITED,
    Content,
    Interrupted,
    Policy,
    Progress,
    SourceChanged,
)
from sublet.movers.sending import count_out
from sublet.movers.trees import safe_path
from sublet.reach.port import Command, Reach, as_is, read_printed
from sublet.reach.pouring import pour

SCHEME = "ssh"
EXAMPLE = "ssh://SYSTEM/home/marie/survey/"
HOME = "/~/"  # a path with this prefix is below the home directory there
SPEED = 20_000_000  # bytes per second, for an estimate
PIECE = 1 << 22  # bytes that are read at a time
MOMENT = 3.0  # seconds to wait for a size while someone asks for offers
_FACTS = """if [ -d "$1" ]; then echo folder; elif [ -f "$1" ]; then wc -c <"$1"; else ls -d -- "$1"; exit 1; fi"""

_FILE = """find -L "$1" -printf '%s %T@ %m'"""
_FILES = """find -L "$1" -type f -printf '%s %T@ %m %P\\0'"""
IS_FOLDER = 21  # the exit code if a folder has the file's name
_PART = f"""case $1 in /*) file=$1 ;; *) file=./$1 ;; esac
part=$file.part
if [ -d "$file" ]; then exit {IS_FOLDER}; fi
if [ "$2" = 0 ]; then mkdir -p -- "${{file%/*}}/" && : >>"$part" || exit 1; fi"""
_WRITE = f"""{_PART}
if [ "$2" = 0 ]; then : >"$part"; fi
cat >>"$part" || {{ rm -f -- "$part"; exit 1; }}"""
_NAME = f"""{_PART}
size=$(wc -c <"$part") || exit 1
if [ "$size" -eq "$2" ]; then exec mv -f -- "$part" "$file"; fi
rm -f -- "$part"
echo "it has $2 bytes, and $size arrived" >&2
exit 1"""
_TOGETHER = """exec tar -c -f - -h --hard-dereference --format=pax -C "$1" --null --no-recursion -T -"""


@dataclass
class SystemFilesMover:
    """The mover of files over a person's own login to a system; while that is open, nobody has to sign in again."""

    platforms: KnownPlatforms
    is_allowed: bool  # whether the logins here are the person's own
    name: str = "system"
    schemes: Sequence[str] = (SCHEME,)
    kinds: Sequence[str] = (SIMPLE,)
    policy: Policy = UNLIMITED  # it is the person's own login, to the person's own systems

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the address or checksum."""
        return check_place(data, self.check_push(data.location), EXAMPLE)

    def check_push(self, location: str) -> str:
        """Return why an address can't be used; empty if it names a system that one signs in to, and a path."""
        if not self.is_allowed:
            return "files of a system are brought by its user's own service alone; write sftp://"
        parts = urlsplit(location)
        if parts.username or parts.password or ":" in parts.netloc or not unquote(parts.path).strip("/~"):
            return f"it is not like {EXAMPLE}; another host than a system that is known here is sftp://HOST/PATH"
        try:
            self._find(location)
        except NotFound as error:
            return f"{error.clause}; a host that is no system here is sftp://{parts.netloc}{parts.path}"
        except PlatformRefused as error:
            return error.clause
        return ""

    def _find(self, location: str) -> tuple[Reach, str]:
        """Return the login to a system, and the path there."""
        parts = urlsplit(location)
        login = self.platforms.get(parts.netloc).login
        if login is None:
            raise PlatformRefused(platform=parts.netloc, why="nobody signs in to it by SSH")
        path = unquote(parts.path)
        return login.reach, path.removeprefix(HOME) if path.startswith(HOME) else path

    async def measure(self, data: Data) -> int | None:
        """Return the size of a file; None for a folder, which would take too long to add up."""
        with suppress(SubletError, TimeoutError):
            async with asyncio.timeout(MOMENT):
                facts = await self._look(*self._find(data.location))
                return int(facts) if facts.isdecimal() else None
        return None

    def estimate(self, data: Data) -> timedelta:
        """Estimate how long the transfer takes."""
        return guess(data, SPEED)

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Copy a file under its own name, or everything in a folder; resumes where an earlier try stopped."""
        require_sound(data, self.check(data))
        try:
            reach, path = self._find(data.location)
            is_folder = await self._look(reach, path) == "folder"
            if is_folder and data.checksum:
                raise missing(data, "it is a folder, and a checksum is of a file")
            place = target if is_folder else target / safe_name(basename(path))
            await reach.fetch(path.rstrip("/") or "/", place, progress)
        except PlatformRefused as error:
            raise missing(data, error.clause) from error
        if not is_folder:
            await asyncio.to_thread(_check, data, place)

    async def links(self, data: Data) -> LinkedFiles:
        """List all files there; links are followed."""
        require_sound(data, self.check(data))
        return (await self._list(data))[1]

    async def find_on(self, data: Data, platform: str) -> tuple[str, LinkedFiles] | None:
        """Return the path and all files if the data is on this platform, else None; links are followed."""
        require_sound(data, self.check(data))
        return await self._list(data) if urlsplit(data.location).netloc == platform else None

    async def _list(self, data: Data) -> tuple[str, LinkedFiles]:
        """Return the path, and all files there."""
        try:
            reach, path = self._find(data.location)
            is_folder = await self._look(reach, path) == "folder"
            answer = await reach.run(Command(("sh", "-c", _FILES, "sh", path), read_printed))
        except PlatformRefused as error:
            raise missing(data, error.clause) from error
        if is_folder and data.checksum:
            raise missing(data, "it is a folder, and a checksum is of a file")
        rows = [row.split(" ", 3) for row in answer.split("\0") if row]
        links = []
        for size, version, mode, below in rows:
            name = str(safe_path(data, below)) if is_folder else safe_name(basename(path))
            url = f"{data.location.rstrip('/')}/{below}" if is_folder else data.location
            is_executable = bool(int(mode, 8) & 0o100)
            links.append(FileLink(name, url, {}, int(size), data.checksum, version, is_executable=is_executable))
        return path.rstrip("/") or "/", LinkedFiles(links, is_folder)

    async def _describe(self, reach: Reach, path: str) -> tuple[int, str, str]:
        """Return the size of a file, its time of change and its mode."""
        answer = await reach.run(Command(("sh", "-c", _FILE, "sh", path), read_printed))
        size, version, mode = answer.split()
        return int(size), version, mode

    async def read(self, data: Data, link: FileLink, offset: int) -> AsyncIterator[bytes]:
        """Yield a file from an offset on, over the open login; the next piece is read ahead."""
        reach, path = self._find(data.location)
        if link.url != data.location:  # it is in a folder of data
            path = join(path, link.path)
        size, at = link.size or 0, offset
        try:
            if (await self._describe(reach, path))[:2] != (link.size, link.version):
                raise SourceChanged("it changed while it was read")
            reading = asyncio.create_task(reach.read(path, at, PIECE))
            try:
                while piece := await reading:
                    at += len(piece)
                    reading = asyncio.create_task(reach.read(path, at, PIECE))
                    yield piece
            finally:
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)
            if (await self._describe(reach, path))[:2] != (link.size, link.version):
                raise SourceChanged("it changed while it was read")
        except PlatformRefused as error:
            raise missing(data, error.clause) from error
        except PlatformUnreachable as error:
            raise Interrupted(error.clause) from error
        if at != size:
            raise Interrupted(f"{at} of {size} bytes came")

    async def read_together(self, data: Data, links: Sequence[FileLink]) -> Sequence[bytes]:
        """Read several files at once, as one tar archive."""
        reach, path = self._find(data.location)
        names = "".join(f"./{link.path}\0" for link in links).encode("utf-8", "surrogateescape")
        try:
            outcome = await reach.run(Command(("sh", "-c", _TOGETHER, "sh", path), as_is, names, seconds=600))
        except PlatformUnreachable as error:
            raise Interrupted(error.clause) from error
        if outcome.code:
            raise SourceChanged(f"it changed while it was read ({outcome.complaint})")
        return read_archive(outcome.stdout, links)

    async def push(self, content: Content, location: str, progress: Progress) -> str:
        """Stream a file to the system, where it gets its name when it is complete."""
        sent = join(location, content.path) if location.endswith("/") else location
        reach, path = self._find(location)
        path = join(path, content.path) if location.endswith("/") else path

        def to_write(offset: int) -> tuple[str, ...]:
            return ("sh", "-c", _WRITE, "sh", path, str(offset))

        outcome = await pour(reach, to_write, 0, count_out(content, progress))
        if not outcome.code:
            outcome = await reach.run(Command(("sh", "-c", _NAME, "sh", path, str(content.size)), as_is))
        if outcome.code == IS_FOLDER:
            raise refuse_folder(content.path, location, sent)
        if outcome.code:
            raise unsent(content.path, sent, outcome.complaint)
        return sent

    async def _look(self, reach: Reach, path: str) -> str:
        """Return `folder`, or the size of a file."""
        return (await reach.run(Command(("sh", "-c", _FACTS, "sh", path), read_printed))).strip()


def _check(data: Data, file: Path) -> None:
    try:
        check_arrived(data, file)
    except Exception:
        file.unlink()  # resuming could never make it right
        raise


def read_archive(archive: bytes, links: Sequence[FileLink]) -> list[bytes]:
    """Return the files of a tar archive in order; raise SourceChanged if they are not these, or have changed."""
    contents = []
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for member, link in zip(tar, links, strict=True):
                changed = Decimal(member.pax_headers.get("mtime", str(member.mtime)))
                facts = (PurePosixPath(member.name), member.isreg(), member.size, changed)
                file = tar.extractfile(member) if member.isreg() else None
                if facts != (PurePosixPath(link.path), True, link.size, Decimal(link.version)) or file is None:
                    raise SourceChanged(f"{link.path} changed while it was read")
                contents.append(file.read())
    except (tarfile.TarError, ValueError) as error:
        raise SourceChanged("it changed while it was read") from error
    return contents
