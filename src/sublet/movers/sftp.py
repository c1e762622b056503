"""The mover of files on SSH servers: `sftp://USER@HOST/PATH`; `/~/PATH` is below the home directory."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from posixpath import basename, dirname, join
from typing import NamedTuple
from urllib.parse import quote

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.kernel.part_names import name_part
from sublet.kernel.streams import closing
from sublet.movers.arrival import check_arrived, guess, missing, refuse_folder, require_sound, safe_name, unsent
from sublet.movers.http import PartFile
from sublet.movers.port import SIMPLE, Content, Interrupted, Policy, Progress, ServerFiles
from sublet.movers.sending import count_out
from sublet.movers.sftp_reading import SharedConnections, find_version, read_file
from sublet.movers.ssh_access import (
    SshDenied,
    SshPlace,
    check_ssh_address,
    check_ssh_data,
    explain_refusal,
    open_way,
    split_ssh_address,
)
from sublet.movers.trees import MOST_FILES, safe_path
from sublet.reach.sftp import SftpClient
from sublet.reach.sftp_packets import RemoteEntry, SftpLost, SftpRefused, SftpStatus

EXAMPLE = "sftp://marie@data.example.org/home/marie/cube.fits"
SPEED = 20_000_000  # bytes per second, for a guess
MOMENT = 3.0  # seconds that a request waits for a size
TRIES = 5  # failures in a row without progress
PAUSE = 0.5  # seconds before the first retry, doubled each time
BLOCK = 1 << 20  # bytes per write
FINAL = ("Permission denied", "Host key", "host key", "Could not resolve", "REMOTE HOST", "subsystem request failed")


class FoundFile(NamedTuple):
    """A remote file, and where it goes here."""

    path: str  # on the server
    below: str  # here, below the data's directory
    entry: RemoteEntry


@dataclass
class SftpMover:
    """Brings files and folders, and sends files."""

    policy: Policy
    pause: float = PAUSE
    name: str = "sftp"
    schemes: Sequence[str] = ("sftp",)
    kinds: Sequence[str] = (SIMPLE,)
    _connections: SharedConnections = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Prepare shared connections; none is open yet."""
        self._connections = SharedConnections(self._connect)

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the address or checksum."""
        return check_ssh_data(data, EXAMPLE)

    def check_push(self, location: str) -> str:
        """Return why the address names no host and path; empty if it does."""
        return check_ssh_address(location)

    async def measure(self, data: Data) -> int | None:
        """Return the size of a file; None for a folder, as adding it up would take too long."""
        if self.check(data) or data.location.endswith("/"):
            return None
        with contextlib.suppress(SshDenied, SftpLost, SftpRefused, TimeoutError, OSError):
            async with asyncio.timeout(MOMENT), self._open(data.location) as (client, place):
                entry = await client.find(place.path)
                return entry.size if entry.is_file else None
        return None

    def estimate(self, data: Data) -> timedelta:
        """Guess how long it takes."""
        return guess(data, SPEED)

    @contextlib.asynccontextmanager
    async def _open(self, location: str) -> AsyncIterator[tuple[SftpClient, SshPlace]]:
        async with open_way(self.policy, location) as way:
            argv = way.to_run("-s", "--", way.place.host, "sftp")
            async with SftpClient.open(argv, way.environment) as client:
                yield client, way.place

    @contextlib.asynccontextmanager
    async def _connect(self, location: str) -> AsyncIterator[SftpClient]:
        async with self._open(location) as (client, _):
            yield client

    async def links(self, data: Data) -> LinkedFiles:
        """Link the file, or all files of a folder, each with its size and modification time."""
        require_sound(data, self.check(data))
        path = split_ssh_address(data.location).path
        try:
            async with self._connections.use(data.location) as client:
                entry = await client.find(path)
                if not entry.is_folder:
                    if not entry.is_file:
                        raise missing(data, "it is neither a file nor a folder")
                    file = FoundFile(path, safe_name(basename(path.rstrip("/"))), entry)
                    return LinkedFiles([_describe(file, data.location, data.checksum)])
                if data.checksum:
                    raise missing(data, "it is a folder, and a checksum is of a file")
                files = await list_below(client, data, path)
        except (SftpRefused, SshDenied) as error:
            raise missing(data, str(error)) from error
        except SftpLost as lost:
            why = await explain_refusal(split_ssh_address(data.location), str(lost))
            raise missing(data, why) from lost
        top = data.location.rstrip("/")
        return LinkedFiles([_describe(file, f"{top}/{_quote(file.below)}") for file in files], is_folder=True)

    async def read(self, data: Data, link: FileLink, offset: int) -> AsyncIterator[bytes]:
        """Read a linked file from a byte offset on, over a connection shared with other readers."""
        top = split_ssh_address(data.location).path
        path = top if link.url == data.location else join(top, link.path)
        try:
            async with (
                self._connections.use(data.location) as client,
                closing(read_file(client, path, link, offset)) as pieces,
            ):
                async for piece in pieces:
                    yield piece
        except (SftpRefused, SshDenied) as error:
            raise missing(data, str(error)) from error
        except SftpLost as lost:
            raise Interrupted(str(lost)) from lost

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Bring a file under its own name, or a folder's content; a lost connection is reopened."""
        require_sound(data, self.check(data))
        transfer, failures = _Transfer(self.policy, data, target, progress), 0
        while True:
            before = transfer.came
            try:
                async with self._open(data.location) as (client, place):
                    await transfer.bring(client, place.path)
                return
            except SftpRefused as refused:
                raise missing(data, str(refused)) from refused
            except SshDenied as denied:
                raise missing(data, str(denied)) from denied
            except SftpLost as lost:
                failures = 1 if transfer.came > before else failures + 1
                if failures >= TRIES or any(word in str(lost) for word in FINAL):
                    why = await explain_refusal(split_ssh_address(data.location), str(lost))
                    raise missing(data, why) from lost
            await asyncio.sleep(self.pause * 2 ** (failures - 1))

    async def list_versions(self, data: Data) -> ServerFiles:
        """Return the files with size and modification time as their versions."""
        require_sound(data, self.check(data))
        try:
            async with self._open(data.location) as (client, place):
                entry = await client.find(place.path)
                if not entry.is_folder:
                    name = safe_name(basename(place.path.rstrip("/")))
                    return ServerFiles(is_folder=False, files={name: (entry.size, str(entry.changed))})
                files = await list_below(client, data, place.path)
        except (SftpRefused, SshDenied, SftpLost) as error:
            raise missing(data, str(error)) from error
        return ServerFiles(True, {file.below: (file.entry.size, str(file.entry.changed)) for file in files})

    async def push(self, content: Content, location: str, progress: Progress) -> str:
        """Write a file under another name and rename it when it is complete; create its folders."""
        try:
            return await self.stream(content, location, progress)
        except SftpLost as lost:
            sent = join(location, content.path) if location.endswith("/") else location
            why = await explain_refusal(split_ssh_address(location), str(lost))
            raise unsent(content.path, sent, why) from lost

    async def stream(self, content: Content, location: str, progress: Progress) -> str:
        """Send a file like `push`, but raise SftpLost if the connection broke or the host has no SFTP."""
        sent = join(location, content.path) if location.endswith("/") else location
        try:
            async with self._open(location) as (client, place):
                path = join(place.path, content.path) if location.endswith("/") else place.path
                if await _is_folder(client, path):
                    raise refuse_folder(content.path, location, sent)
                await _make_folders(client, dirname(path))
                part = name_part(path)
                await client.write(part, count_out(content, progress))
                size = (await client.find(part)).size
                if size != content.size:
                    raise unsent(content.path, sent, f"it has {content.size} bytes, and {size} arrived")
                await client.rename(part, path)
        except (SftpRefused, SshDenied) as error:
            raise unsent(content.path, sent, str(error)) from error
        return sent


class _Transfer:
    """The transfer of one item of data."""

    def __init__(self, policy: Policy, data: Data, target: Path, progress: Progress) -> None:
        self._policy, self._data, self._target, self._progress = policy, data, target, progress
        self.came = 0  # bytes, over all attempts

    async def bring(self, client: SftpClient, path: str) -> None:
        entry = await client.find(path)
        if entry.is_folder:
            if self._data.checksum:
                raise missing(self._data, "it is a folder, and a checksum is of a file")
            files = await list_below(client, self._data, path, self._target)
        else:
            files = [FoundFile(path, safe_name(basename(path.rstrip("/"))), entry)]
        total = sum(file.entry.size for file in files)
        if self._policy.largest and total > self._policy.largest:
            limit = f"it has more than {self._policy.largest} bytes, the most that is downloaded here"
            raise missing(self._data, limit)
        done = 0
        for file in files:
            await self._bring_file(client, file, done, total, is_all=not entry.is_folder)
            done += file.entry.size
            self._progress(done, total)

    async def _bring_file(self, client: SftpClient, file: FoundFile, done: int, total: int, *, is_all: bool) -> None:
        if not file.entry.is_file:
            raise missing(self._data, "it is neither a file nor a folder")
        place, mark = self._target / file.below, f"{file.entry.changed}-{file.entry.size}"
        part = PartFile(place)
        if await asyncio.to_thread(place.is_file) and place.stat().st_size == file.entry.size:
            if is_all:
                await asyncio.to_thread(check_arrived, self._data, place)
            return
        if part.mark != mark or part.size > file.entry.size:
            part.begin(mark)
        with part.path.open("ab", BLOCK) as writer:
            size, block = writer.tell(), bytearray()
            try:
                async with contextlib.aclosing(client.read(file.path, size)) as pieces:
                    async for piece in pieces:
                        size += len(piece)
                        self._check_room(file, size)
                        block += piece
                        if len(block) >= BLOCK:
                            full, block = block, bytearray()  # swapped first, so that nothing is written twice
                            await asyncio.to_thread(writer.write, full)
                        self.came += len(piece)
                        self._progress(done + size, total)
            finally:
                await asyncio.to_thread(writer.write, block)  # whatever the error, received bytes are kept
        await asyncio.to_thread(self._finish, file, part, is_all=is_all)

    def _check_room(self, file: FoundFile, size: int) -> None:
        if size > file.entry.size:
            raise missing(self._data, f"{file.path} grew as it was read")

    def _finish(self, file: FoundFile, part: PartFile, *, is_all: bool) -> None:
        try:
            if part.size != file.entry.size:
                why = f"{file.path} has {file.entry.size} bytes, and {part.size} came"
                raise missing(self._data, why)
            if is_all:
                check_arrived(self._data, part.path)
        except Exception:
            part.drop()  # resuming could never repair it
            raise
        part.path.chmod(0o755 if file.entry.mode & 0o100 else 0o644)
        part.finish()


def _quote(path: str) -> str:
    return quote(path, errors="surrogateescape")


def _describe(file: FoundFile, url: str, checksum: str = "") -> FileLink:
    is_executable = bool(file.entry.mode & 0o100)
    return FileLink(
        file.below, url, {}, file.entry.size, checksum, find_version(file.entry), is_executable=is_executable
    )


async def list_below(client: SftpClient, data: Data, top: str, target: Path | None = None) -> list[FoundFile]:
    """List all files below a folder; with `target`, also make its subfolders there.

    Links are followed, but not in circles.
    """
    files: list[FoundFile] = []
    # Folders, with their own real path and those of all above them
    waiting: list[tuple[str, tuple[str, ...]]] = [("", (await client.resolve(top),))]
    while waiting:
        folder, real = waiting.pop()
        if target:
            await asyncio.to_thread((target / folder).mkdir, parents=True, exist_ok=True)
        for name, entry in sorted(await client.list(join(top, folder))):
            below = str(safe_path(data, join(folder, name)))
            is_link, path = entry.is_link, join(top, below)
            entry = await _follow(client, data, path, below) if is_link else entry
            if entry.is_folder:
                own = await client.resolve(path) if is_link else join(real[-1], name)
                if own in real:
                    raise missing(data, f"the link {below} in it leads in a circle")
                waiting.append((below, (*real, own)))
            elif entry.is_file:
                files.append(FoundFile(path, below, entry))
            else:
                raise missing(data, f"{below} in it is neither a file nor a folder")
        if len(files) + len(waiting) > MOST_FILES:
            raise missing(data, f"it has more than {MOST_FILES} files; bring an archive of them instead")
    return files


async def _follow(client: SftpClient, data: Data, path: str, below: str) -> RemoteEntry:
    """Return what a link leads to; raise DataNotThere if that doesn't exist."""
    try:
        return await client.find(path)
    except SftpRefused as refused:
        if refused.code != SftpStatus.NO_SUCH_FILE:
            raise
        raise missing(data, f"the link {below} in it leads nowhere") from refused


async def _is_folder(client: SftpClient, path: str) -> bool:
    try:
        return (await client.find(path)).is_folder
    except SftpRefused:
        return False  # it doesn't exist, or the error will show when the file is written


async def _make_folders(client: SftpClient, folder: str) -> None:
    """Make a folder and its missing parents."""
    if not folder.strip("/."):
        return
    try:
        await client.find(folder)
    except SftpRefused as refused:
        if refused.code != SftpStatus.NO_SUCH_FILE:
            raise
        await _make_folders(client, dirname(folder))
        with contextlib.suppress(SftpRefused):  # another transfer may have made it just now
            await client.make_folder(folder)
