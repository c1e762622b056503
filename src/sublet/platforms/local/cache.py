"""The data cache on this machine: remote data is kept here once, for every session that reads it.

Several service processes may use it at once. A short lock over the whole cache guards who needs what, so that nothing
is removed while a session begins to need it; a claim guards the transfer of an entry (see cache_entry.py).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tarfile
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sublet.data.model.links import LinkedFiles
from sublet.data.model.roads import CachedItem, choose_evictions
from sublet.kernel.errors import DiskFull, PlatformRefused
from sublet.kernel.path_texts import restore_path
from sublet.kernel.streams import closing
from sublet.platforms import cores
from sublet.platforms.batch.kept import read_name
from sublet.platforms.caching import CachePlacement, EntryPhase, EntryState, NoWay
from sublet.platforms.claims import ServiceProcess
from sublet.platforms.local.cache_entry import LocalEntry
from sublet.platforms.local.cloning import copy_file, lay, remove
from sublet.platforms.local.os_errors import translate_os_errors
from sublet.platforms.local.receiving import BEAT, receiving, unpack_into
from sublet.platforms.port import KeptFile

CHUNK = 1 << 20  # bytes that are written together


@dataclass
class LocalCache:
    """The cache of a platform that is this machine."""

    platform: str
    home: Path
    quota: int  # bytes; 0: none
    can_link: bool  # sessions can't change what they see as a hard link
    is_over: Callable[[str], bool]  # whether a session has ended, or is gone
    is_here: bool = True
    forget: Callable[[LocalEntry], bool] = lambda entry: True  # remove what an entry has elsewhere

    def entry(self, name: str) -> LocalEntry:
        """Return an entry, whether it exists or not; raise PlatformRefused for an invalid name."""
        if not name or "/" in name or name.startswith("."):
            raise PlatformRefused(f"{name!r} can't be the name of an entry of a cache.")
        return LocalEntry(self.home / "kept" / name)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other processes from recording needs or removing entries meanwhile."""
        with translate_os_errors(self.platform):
            (self.home / "kept").mkdir(mode=0o700, parents=True, exist_ok=True)
            with cores.lock(self.home / "kept" / ".lock"):
                yield

    async def want(self, entry: str, user: str, label: str = "") -> EntryState:
        """Record that a session needs an entry, and return its state."""
        return await asyncio.to_thread(self._want, self.entry(entry), user, label)

    def _want(self, entry: LocalEntry, user: str, label: str) -> EntryState:
        with self._alone():
            entry.need(user, label)
        return self._look(entry)

    async def look(self, entry: str) -> EntryState:
        """Return an entry's current state."""
        return await asyncio.to_thread(self._look, self.entry(entry))

    def _look(self, entry: LocalEntry) -> EntryState:
        if entry.is_whole():
            return EntryState(EntryPhase.THERE, entry.size, entry.size)
        if entry.is_claimed():
            return EntryState(EntryPhase.BUSY, entry.arrived)
        return EntryState(EntryPhase.IDLE)

    async def list_there(self, entries: Collection[str]) -> Collection[str]:
        """Return which entries are there; on this machine a look is as cheap as remembering."""
        return await asyncio.to_thread(lambda: [name for name in entries if self.entry(name).is_whole()])

    async def make_room(self, size: int) -> None:
        """Remove the least recently needed entries until this many bytes fit.

        Raise DiskFull if the disk itself is too full.
        """
        await asyncio.to_thread(self._make_room, size)

    def _make_room(self, size: int) -> None:
        with self._alone():
            items = [
                CachedItem(entry.folder.name, entry.size, entry.used.timestamp(), bool(self._list_users(entry)))
                for entry in self._entries()
            ]
            most = sum(item.size for item in items) + shutil.disk_usage(self.home).free
            for name in choose_evictions(items, size, min(self.quota or most, most)):
                self._remove(self.entry(name))
        free = shutil.disk_usage(self.home).free
        if size > free:
            raise DiskFull(platform=self.platform, why=f"it has {size} bytes and {free} are free here")

    def _entries(self) -> list[LocalEntry]:
        folder = self.home / "kept"
        names = sorted(os.listdir(folder)) if folder.is_dir() else []
        return [LocalEntry(folder / name) for name in names if not name.startswith(".")]

    def _list_users(self, entry: LocalEntry) -> tuple[str, ...]:
        return tuple(user for user in entry.users if not self.is_over(user))

    def _remove(self, entry: LocalEntry) -> bool:
        """Remove an entry, renaming it first so that a half-removed one is never seen; return whether it is gone."""
        if not self.forget(entry):
            return False
        aside = self.home / "trash" / f"{entry.folder.name}.{os.urandom(4).hex()}"
        aside.parent.mkdir(mode=0o700, exist_ok=True)
        entry.folder.rename(aside)
        remove(aside)
        return True

    async def fetch(self, entry: str, files: LinkedFiles, *, public_only: bool, largest: int) -> None:
        """Refuse with NoWay: the service is on this machine and reads by itself."""
        raise NoWay("")

    def note_no_way(self, host: str, why: str) -> None:
        """Do nothing, as nothing here is fetched by another host."""

    async def claim(self, entry: str) -> Mapping[str, int] | None:
        """Claim the transfer of an entry and return the sizes so far; None if another has claimed or completed it."""
        return await asyncio.to_thread(self._claim, self.entry(entry))

    def _claim(self, entry: LocalEntry) -> Mapping[str, int] | None:
        with self._alone():
            if entry.is_claimed() or entry.is_whole():
                return None
            entry.folder.mkdir(mode=0o700, exist_ok=True)
            entry.claim_file.write_text(str(ServiceProcess.here()))
            return entry.measure()

    async def measure(self, entry: str) -> Mapping[str, int]:
        """Return the sizes of an entry's files that have arrived so far."""
        return await asyncio.to_thread(self.entry(entry).measure)

    async def write(self, entry: str, path: str, offset: int, pieces: AsyncIterator[bytes]) -> None:
        """Write one file of an entry from an offset; writing the same bytes twice does no harm."""
        part, claim = self.entry(entry).part(path), self.entry(entry).claim_file
        with translate_os_errors(self.platform):
            await asyncio.to_thread(part.parent.mkdir, parents=True, exist_ok=True)
            file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                buffer, beat = bytearray(), time.monotonic()
                async with closing(pieces) as pieces:
                    async for piece in pieces:
                        buffer += piece
                        if len(buffer) >= CHUNK:
                            await asyncio.to_thread(_write_all, file, bytes(buffer), offset)
                            offset += len(buffer)
                            buffer.clear()
                        if time.monotonic() - beat > BEAT:
                            beat = time.monotonic()
                            claim.touch()
                await asyncio.to_thread(_write_all, file, bytes(buffer), offset)
            finally:
                os.close(file)

    async def unpack(self, entry: str, archive: AsyncIterator[bytes]) -> None:
        """Unpack an archive while it arrives, through a pipe."""
        reader, writer = os.pipe()
        target = self.entry(entry).folder / "part.d"
        unpacking = asyncio.create_task(asyncio.to_thread(_unpack, reader, target))
        try:
            with suppress(BrokenPipeError):  # the unpacking task reports why it ended
                async with closing(archive) as archive:
                    async for piece in archive:
                        await asyncio.to_thread(_write_pipe, writer, piece)
        finally:
            os.close(writer)
            with translate_os_errors(self.platform):
                await unpacking

    @asynccontextmanager
    async def receive(self, entry: str, *, is_folder: bool) -> AsyncIterator[Path]:
        """Provide a folder into which a mover brings a claimed entry by itself; then it can be published."""
        with translate_os_errors(self.platform):
            async with receiving(self.entry(entry), is_folder=is_folder) as target:
                yield target

    async def unpack_archive(self, entry: str, target: str) -> None:
        """Unpack one entry as the content of another; raise PlatformRefused if it can't or may not be unpacked."""
        with translate_os_errors(self.platform):
            await unpack_into(self.entry(target), self.entry(entry).content)

    async def publish(self, entry: str, files: LinkedFiles) -> None:
        """Check an entry and make it available."""
        await asyncio.to_thread(self._publish, self.entry(entry), files)

    def _publish(self, entry: LocalEntry, files: LinkedFiles) -> None:
        with translate_os_errors(self.platform):
            try:
                entry.publish(files)
            except PlatformRefused:
                entry.drop_parts()
                raise
            finally:
                entry.claim_file.unlink(missing_ok=True)
        if not files.links:  # its size was not known before
            with suppress(DiskFull):
                self._make_room(0)

    async def give_up(self, entry: str, *, drop: bool = False) -> None:
        """Release the claim on an entry; `drop` also deletes the part received so far."""
        await asyncio.to_thread(self._give_up, self.entry(entry), drop)

    def _give_up(self, entry: LocalEntry, drop: bool) -> None:
        if drop:
            entry.drop_parts()
        entry.claim_file.unlink(missing_ok=True)

    async def place(self, user: str, placements: Sequence[CachePlacement]) -> None:
        """Clone, link or copy each entry into the session's directory."""
        await asyncio.to_thread(self._place, self.home / "sessions" / user, placements)

    def _place(self, root: Path, placements: Sequence[CachePlacement]) -> None:
        with translate_os_errors(self.platform):
            for placement in placements:
                content = self.entry(placement.entry).content
                is_writable = placement.is_writable
                lay(content, root / placement.target, is_writable=is_writable, can_link=self.can_link)

    async def take(self, user: str, session: str, files: Sequence[tuple[str, str]], placement: CachePlacement) -> None:
        """Clone or copy another session's results, which stay unchanged."""
        await asyncio.to_thread(self._take, user, session, files, placement)

    def _take(self, user: str, session: str, files: Sequence[tuple[str, str]], placement: CachePlacement) -> None:
        source, target = self.home / "sessions" / session / "work", self.home / "sessions" / user / placement.target
        with translate_os_errors(self.platform):
            for path, place in ((restore_path(path), restore_path(place)) for path, place in files):
                if not path:
                    (target / place).mkdir(parents=True, exist_ok=True)
                    continue
                if (source / path).is_symlink() or not (source / path).is_file():
                    raise PlatformRefused(f"{path} is not there any more")
                (target / place).parent.mkdir(parents=True, exist_ok=True)
                remove(target / place)
                copy_file(source / path, target / place, (source / path).stat().st_mode & 0o777 | 0o600)

    def find_content(self, entry: str) -> str:
        """Return the path of an entry's content."""
        return str(self.entry(entry).content)

    async def leave(self, user: str) -> Sequence[str]:
        """Release all entries of a session; there are no external transfers to this machine."""
        await asyncio.to_thread(self._leave, user)
        return ()

    def _leave(self, user: str) -> None:
        for entry in self._entries():
            entry.forget(user)

    async def list_kept(self) -> Sequence[KeptFile]:
        """List the complete entries."""
        return await asyncio.to_thread(self._list_kept)

    def _list_kept(self) -> list[KeptFile]:
        return [
            KeptFile(read_name(entry.folder.name), entry.size, entry.used, self._list_users(entry), entry.label)
            for entry in self._entries()
            if entry.read_record()
        ]

    async def let_go(self, names: Collection[str], idle: timedelta) -> Sequence[str]:
        """Remove the entries of these names, or all, that no session has needed for `idle`; return the removed ones."""
        return await asyncio.to_thread(self._let_go, names, idle)

    def _let_go(self, names: Collection[str], idle: timedelta) -> list[str]:
        gone, before = [], datetime.now(UTC) - idle
        with self._alone():
            for entry in self._entries():
                is_meant = not names or entry.folder.name in names
                is_free = entry.used <= before and not self._list_users(entry) and not entry.is_claimed()
                if is_meant and is_free and self._remove(entry):
                    gone.append(read_name(entry.folder.name))
        return gone


def _write_all(file: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(file, view, offset)
        view, offset = view[count:], offset + count


def _write_pipe(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _unpack(reader: int, target: Path) -> None:
    """Unpack regular files only; a truncated archive leaves the files that are complete."""
    target.mkdir(mode=0o700, exist_ok=True)
    broken_off = suppress(tarfile.ReadError, EOFError)
    with os.fdopen(reader, "rb") as stream, broken_off, tarfile.open(fileobj=stream, mode="r|") as archive:
        archive.extractall(target, filter="data")
