"""Streams files to a system's cache piece by piece, without storing them here."""

from __future__ import annotations

import asyncio
import tarfile
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence

from sublet.booking.model.request import Data
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.data.model.retries import TransferRetries
from sublet.kernel.errors import PlatformUnreachable
from sublet.kernel.streams import closing
from sublet.movers.arrival import missing
from sublet.movers.port import Interrupted, Links, Progress, ReadsByParts, ReadsTogether, SourceChanged
from sublet.platforms.caching import DataCache

TOGETHER = 1 << 20  # bytes: files up to this size travel in one archive
AHEAD = 16  # small files that are read in parallel
GROUP, GROUP_NAMES, MOST_TOGETHER = 1 << 22, 1 << 17, 1000  # limits of a group: bytes of files, bytes of names, files
GROUPS_AHEAD = 2  # groups that are read in parallel
CHUNK = 1 << 18  # bytes of an archive that are written together
BLOCK = 512  # bytes: alignment of files in a tar archive


class StreamTally:
    """Counts how many bytes of a transfer have come."""

    def __init__(self, total: int | None, progress: Progress) -> None:
        """Start at zero."""
        self._total, self._progress, self.done = total, progress, 0

    def add(self, count: int) -> None:
        """Count some more bytes, and report progress."""
        self.done += count
        self._progress(self.done, self._total)


async def stream_files(
    cache: DataCache,
    entry: str,
    data: Data,
    mover: Links,
    files: LinkedFiles,
    sizes: Mapping[str, int],
    progress: Progress,
) -> None:
    """Stream all files of an entry, except those that are already there with the right size."""
    tally = StreamTally(files.size, progress)
    if not files.is_folder:
        await _stream_file(cache, entry, data, mover, files.links[0], "", tally)
        return
    links = [link for link in files.links if sizes.get(link.path) != link.size]
    small = [link for link in links if _is_small(link)]
    tally.add(sum(sizes[link.path] for link in files.links if sizes.get(link.path) == link.size))
    await _stream_small(cache, entry, data, mover, small, tally, files.folders)
    for link in links:
        if not _is_small(link):
            await _stream_file(cache, entry, data, mover, link, link.path, tally)


def _is_small(link: FileLink) -> bool:
    return link.size is not None and link.size <= TOGETHER


async def _stream_file(
    cache: DataCache, entry: str, data: Data, mover: Links, link: FileLink, path: str, tally: StreamTally
) -> None:
    """Stream one file; after an interruption, resume where the copy there ends."""
    retries, before, can_go_on, most = TransferRetries(), tally.done, bool(link.identity), 0
    while True:
        offset = (await cache.measure(entry)).get(path, 0) if can_go_on else 0
        offset = offset if link.size is None or offset <= link.size else 0
        if offset and offset != link.size and isinstance(mover, ReadsByParts):
            offset = await mover.find_start(data, link, offset)
        tally.add(before + offset - tally.done)
        if offset and offset == link.size:
            return
        reading = _CountedReading(mover.read(data, link, offset), tally)
        try:
            await cache.write(entry, path, offset, reading.read())
            return
        except SourceChanged:
            if not offset:
                raise
            can_go_on, pause = False, 0.0  # perhaps the server doesn't support ranges
        except (Interrupted, PlatformUnreachable) as broken:
            came = f", {offset + reading.count} of {link.size} bytes came" if link.size else ""
            # Compared with the most that ever came: what can't be resumed begins anew each time
            pause = _wait(data, broken, retries, has_progress=offset + reading.count > most, came=came)
            most = max(most, offset + reading.count)
        await asyncio.sleep(pause)


def _wait(
    data: Data,
    broken: Interrupted | PlatformUnreachable,
    retries: TransferRetries,
    *,
    has_progress: bool,
    came: str = "",
) -> float:
    """Return how many seconds to wait before a retry; raise the error once there were enough attempts."""
    pause = retries.note_failure(has_progress=has_progress, wanted=getattr(broken, "pause", 0.0))
    if pause is not None:
        return pause
    if isinstance(broken, PlatformUnreachable):
        raise broken
    raise missing(data, f"{broken} ({retries.failures} tries{came})") from broken


class _CountedReading:
    """A stream that counts how much of it was read."""

    def __init__(self, pieces: AsyncIterator[bytes], tally: StreamTally) -> None:
        self._pieces, self._tally, self.count = pieces, tally, 0

    async def read(self) -> AsyncIterator[bytes]:
        async with closing(self._pieces) as pieces:
            async for piece in pieces:
                yield piece
                self.count += len(piece)
                self._tally.add(len(piece))


async def _stream_small(
    cache: DataCache,
    entry: str,
    data: Data,
    mover: Links,
    links: Sequence[FileLink],
    tally: StreamTally,
    folders: Sequence[str],
) -> None:
    """Stream many small files and empty folders as one archive; a retry leaves out the files that have come."""
    retries, left = TransferRetries(), list(links)
    while left or folders:
        try:
            await cache.unpack(entry, _pack(data, mover, left, tally, folders))
            return
        except (Interrupted, PlatformUnreachable) as broken:
            sizes = await cache.measure(entry)
            remaining = [link for link in left if sizes.get(link.path) != link.size]
            pause = _wait(data, broken, retries, has_progress=len(remaining) < len(left))
            left = remaining
        await asyncio.sleep(pause)


async def _pack(
    data: Data, mover: Links, links: Sequence[FileLink], tally: StreamTally, folders: Sequence[str]
) -> AsyncIterator[bytes]:
    """Yield a tar archive of empty folders and of files, reading a few files ahead."""
    is_together = isinstance(mover, ReadsTogether)
    waiting = deque(group_links(links) if is_together else [[link] for link in links])
    reading = deque[tuple[list[FileLink], asyncio.Task[Sequence[bytes]]]]()
    now, buffer = int(time.time()), bytearray()
    for folder in folders:
        buffer += _pack_folder(folder, now)
    try:
        while waiting or reading:
            while waiting and len(reading) < (GROUPS_AHEAD if is_together else AHEAD):
                group = waiting.popleft()
                reading.append((group, asyncio.create_task(_read_group(data, mover, group))))
            group, task = reading.popleft()
            for link, content in zip(group, await task, strict=True):
                buffer += pack_file(link, content, now)
                tally.add(len(content))
                if len(buffer) >= CHUNK:
                    yield bytes(buffer)
                    buffer.clear()
        yield bytes(buffer) + b"\0" * 2 * BLOCK
    finally:
        for _, task in reading:
            task.cancel()
        await asyncio.gather(*(task for _, task in reading), return_exceptions=True)


def _pack_folder(path: str, now: int) -> bytes:
    """Return the tar header of an empty folder."""
    info = tarfile.TarInfo(path)
    info.type, info.mtime, info.mode = tarfile.DIRTYPE, now, 0o700
    return info.tobuf(tarfile.PAX_FORMAT)


def pack_file(link: FileLink, content: bytes, now: int) -> bytes:
    """Return a file as a tar member."""
    info = tarfile.TarInfo(link.path)
    info.size, info.mtime, info.mode = len(content), now, 0o700 if link.is_executable else 0o600
    return info.tobuf(tarfile.PAX_FORMAT) + content + b"\0" * (-len(content) % BLOCK)


def group_links(links: Sequence[FileLink]) -> list[list[FileLink]]:
    """Group small files to be read together, within the limits of what memory should hold."""
    groups: list[list[FileLink]] = []
    room = names = 0
    for link in links:
        size, length = link.size or 0, len(link.path) * 4
        if not groups or size > room or length > names or len(groups[-1]) >= MOST_TOGETHER:
            groups.append([])
            room, names = GROUP, GROUP_NAMES
        groups[-1].append(link)
        room, names = room - size, names - length
    return groups


async def _read_group(data: Data, mover: Links, links: Sequence[FileLink]) -> Sequence[bytes]:
    """Read one small file, or a group of them, with retries."""
    retries = TransferRetries()
    while True:
        try:
            if isinstance(mover, ReadsTogether):
                return await mover.read_together(data, links)
            return [b"".join([piece async for piece in mover.read(data, link, 0)]) for link in links]
        except Interrupted as broken:
            if (pause := retries.note_failure(has_progress=False, wanted=broken.pause)) is None:
                raise
        await asyncio.sleep(pause)
