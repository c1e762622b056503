"""Images for container tools, made from archives before sessions need them, and kept in the cache of this machine.

Images for tools that run a directory are in unpacked_images.py.

    kept/oci-DIGEST/content      a registry's image as one file, for Apptainer
    kept/image-TOOL-ID/content   for Apptainer the image as one file; for tools with their own store, the name of the
                                 image there, which keeps it in that store until the entry is removed

The session finds the image by its ID (kinds/inside/container_images.py): by its name in the store, or as a file in the
session's own directory.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sublet.booking.model.image import ImageArchive
from sublet.kernel.log import log
from sublet.platforms.batch.kept import name_image
from sublet.platforms.caching import EntryPhase
from sublet.platforms.local.cache import LocalCache
from sublet.platforms.local.cache_entry import LocalEntry
from sublet.platforms.local.entry_making import LOOK_AGAIN, make_alone, point
from sublet.platforms.local.images import FETCHING, LOOKING, SIF, STORES, LocalImages
from sublet.platforms.port import ArchiveReader

PREFIX, REGISTRY = "image-", "docker://"
WAITING = 10.0  # seconds to wait for a session that is changing a store
REMOVING = 60  # seconds for a tool to remove a name


def name_entry(tool: str, id: str) -> str:
    """Return the name of an image's cache entry for a tool."""
    return f"{PREFIX}{tool}-{id.partition(':')[2]}"


def name_stored(id: str) -> str:
    """Return the name of a cached image in a tool's own store; sessions compute the same name."""
    return f"localhost/sublet-kept:{id.partition(':')[2]}"


@dataclass
class MadeImages:
    """Images made from archives on this machine."""

    cache: LocalCache
    images: LocalImages

    async def make(self, tools: Mapping[str, str], file: str, tool: str, archive: ArchiveReader, user: str) -> bool:
        """Make the image of an archive, once for all sessions, and return whether it exists.

        If not, the session makes it.
        """
        if tool not in (*STORES, *SIF) or not tools.get(tool):
            return False
        if not (id := await asyncio.to_thread(archive.find_id)):
            return False
        entry = name_entry(tool, id)
        state = await self.cache.want(entry, user, f"{Path(file).name} for {tool}")
        is_there = state.phase is EntryPhase.THERE and await self._is_stored(tools, tool, id)
        size = await asyncio.to_thread(os.path.getsize, file)

        async def make() -> bool:
            described = await asyncio.to_thread(archive.describe)
            return described is not None and await self._make(tools, file, tool, described, entry, id)

        if not is_there and not await make_alone(
            self.cache, entry, size, make, partial(self._is_stored, tools, tool, id)
        ):
            return False
        if tool in SIF:
            await asyncio.to_thread(self._show, user, entry, id)
        return True

    async def _is_stored(self, tools: Mapping[str, str], tool: str, id: str) -> bool:
        """Whether a tool's own store still has the image; somebody may have cleared the store."""
        words = (tools[tool], "image", "inspect", name_stored(id))
        return tool in SIF or await self.images.run(words, LOOKING)

    async def fetch(self, tools: Mapping[str, str], location: str, tool: str, target: Path, user: str) -> bool:
        """Pull an image by its digest as a file that all sessions share, and link it at `target`.

        Return whether it exists.
        """
        if not tools.get(tool):
            return False
        entry, part = name_image(location), self.cache.entry(name_image(location)).part("")
        words = (tools[tool], "--silent", "pull", "--disable-cache", "--force", str(part), location)
        state = await self.cache.want(entry, user, location.removeprefix(REGISTRY))
        is_there = state.phase is EntryPhase.THERE
        if not is_there and not await make_alone(self.cache, entry, 0, partial(self.images.run, words, FETCHING)):
            return False
        await asyncio.to_thread(point, self.cache, target, entry)
        return True

    async def _make(
        self, tools: Mapping[str, str], file: str, tool: str, archive: ImageArchive, entry: str, id: str
    ) -> bool:
        part = self.cache.entry(entry).part("")
        if tool in SIF:
            words = (tools[tool], "--silent", "pull", "--disable-cache", "--force", str(part), f"{archive.form}:{file}")
            return await self.images.run(words, FETCHING)
        pull = ("pull", "--quiet", f"{archive.form}:{file}")
        load = ("load", "--quiet", "--input", file) if tool == "docker" else pull
        tag = ("tag", id.partition(":")[2], name_stored(id))
        async with _alone():
            for step in (load, tag):
                if not await self.images.run((tools[tool], *step), FETCHING):
                    return False
        stored = {"tool": tools[tool], "name": name_stored(id)}
        await asyncio.to_thread(part.write_text, json.dumps(stored))
        await asyncio.to_thread(lambda: self.cache.entry(entry).set_weight(os.path.getsize(file)))
        return True

    def _show(self, user: str, entry: str, id: str) -> None:
        """Link the file into a session's directory, under the image's ID."""
        point(self.cache, self.cache.home / "sessions" / user / f"image-{id.partition(':')[2]}.sif", entry)

    async def find_made(self, archives: Mapping[str, ArchiveReader]) -> Collection[str]:
        """Return the archives of which one of the tools already has the image."""
        return await asyncio.to_thread(lambda: [name for name, archive in archives.items() if self._has_any(archive)])

    def _has_any(self, archive: ArchiveReader) -> bool:
        id = archive.find_id()
        return bool(id) and any(self.cache.entry(name_entry(tool, id)).is_whole() for tool in (*STORES, *SIF))


def forget_stored(entry: LocalEntry) -> bool:
    """Remove an image from its tool's own store before its cache entry is removed.

    Return whether that could be tried.
    """
    if not entry.folder.name.startswith(tuple(f"{PREFIX}{tool}-" for tool in STORES)) or not entry.content.exists():
        return True
    deadline = time.monotonic() + WAITING
    while (lock := _try_lock()) is None:
        if time.monotonic() > deadline:
            return False  # a session is loading; the entry is removed another time
        time.sleep(LOOK_AGAIN)
    try:
        stored = json.loads(entry.content.read_bytes())
        words = (stored["tool"], "rmi", stored["name"])
        subprocess.run(words, capture_output=True, check=False, timeout=REMOVING, stdin=subprocess.DEVNULL)
    except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
        log.info("image.not-removed", entry=entry.folder.name, why=str(error))
    finally:
        os.close(lock)
    return True


@asynccontextmanager
async def _alone() -> AsyncIterator[None]:
    """Hold the lock for changing names in a store (the reason is in kinds/inside/container_images.py)."""
    while (lock := _try_lock()) is None:  # noqa: ASYNC110 (another process may hold it)
        await asyncio.sleep(LOOK_AGAIN)
    try:
        yield
    finally:
        os.close(lock)


def _try_lock() -> int | None:
    """Return a descriptor that holds the lock until it is closed; None if another process holds it."""
    store = os.open(find_store_folder(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(store, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(store)
        return None
    except OSError:
        pass  # a file system without locks
    return store


def find_store_folder() -> str:
    """Return a directory that exactly the users of one image store share; sessions lock the same one."""
    folders = (os.path.expanduser("~"),) if os.geteuid() else ("/var/lib/containers", "/var/lib")
    return next((folder for folder in folders if os.path.isdir(folder)), "/")
