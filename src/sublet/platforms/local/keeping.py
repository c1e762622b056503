"""What this machine keeps for later sessions: the settings of its cache, and its operations."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

from pydantic import Field, PrivateAttr

from sublet.platforms.batch.kept import name_of
from sublet.platforms.caching import DataCache
from sublet.platforms.local.cache import LocalCache
from sublet.platforms.local.images import SIF, LocalImages
from sublet.platforms.local.made_images import MadeImages, forget_stored
from sublet.platforms.local.places import measure
from sublet.platforms.local.unpacked_images import CHARLIECLOUD, UnpackedImages, unpacks
from sublet.platforms.port import ArchiveReader, Duration, KeptFile, Memory, Platform
from sublet.platforms.sessiondir import SessionDir

GIB = 1 << 30


class KeepsData(Platform):
    """The part of the local platform that keeps data."""

    cache: Memory = Field(
        default=20 * GIB,
        ge=0,
        description="How much data from elsewhere is kept for later sessions, as `200GiB`: that goes first which has "
        "not been needed for the longest time; 0: no limit but `unused`.",
    )
    unused: Duration = Field(
        default=timedelta(days=7), description="How long data from elsewhere stays with no session that needs it."
    )
    _data_cache: LocalCache | None = PrivateAttr(default=None)
    _images: LocalImages | None = PrivateAttr(default=None)  # None: every session has its own home directory and images

    def _open_data_cache(self, home: Path, environment: Mapping[str, str], *, has_mounts: bool) -> None:
        """Open the cache; without mount namespaces, root could write through a hard link despite its permissions."""
        if "HOME" in environment or os.geteuid() == 0:
            self._images = LocalImages(environment)

        def is_over(key: str) -> bool:
            session = SessionDir(self.name, home, key)
            return not session.root.is_dir() or session.ended

        can_link = has_mounts or os.geteuid() != 0
        self._data_cache = LocalCache(self.name, home, self.cache, can_link, is_over, forget=forget_stored)

    async def open_cache(self) -> DataCache:
        """Open the data cache of this machine."""
        return self._cache_here

    @property
    def _cache_here(self) -> LocalCache:
        if self._data_cache is None:
            raise RuntimeError("the platform was not opened")
        return self._data_cache

    async def find_images(self, images: Mapping[str, str]) -> Collection[str]:
        """Return the images that the container tools here have; all of them, if each session has its own store."""
        if self._images is None:
            return list(images)
        tools, unpacked = (await self.survey()).tools, UnpackedImages(self._cache_here)
        stored = await self._images.find(tools, images)
        return [*stored, *await asyncio.to_thread(unpacked.list_there, tools, images)]

    async def fetch_image(self, location: str, tool: str, target: Path, user: str) -> bool:
        """Have a session's tool pull its image; an image named by its digest is kept as a file for all sessions."""
        tools = (await self.survey()).tools
        if tool == CHARLIECLOUD and "@" in location:
            return await UnpackedImages(self._cache_here).use(location.rpartition("@")[2], target, user)
        if self._images is None:
            return False
        if tool in SIF and "@" in location:
            return await MadeImages(self._cache_here, self._images).fetch(tools, location, tool, target, user)
        return await self._images.fetch(tools, location, tool, target)

    async def make_image(self, kept: str, tool: str, archive: ArchiveReader | None, user: str) -> bool:
        """Have a session's tool load an archive, or make an image file of it."""
        if archive is None:
            return False
        tools = (await self.survey()).tools
        if unpacks(tool, tools) and await UnpackedImages(self._cache_here).make(tools, kept, tool, archive, user):
            return True
        if self._images is None:
            return False
        return await MadeImages(self._cache_here, self._images).make(tools, kept, tool, archive, user)

    async def find_made(self, archives: Mapping[str, ArchiveReader]) -> Collection[str]:
        """Return the archives whose image is in the cache; all of them, if each session has its own store."""
        if self._images is None:
            return list(archives)
        made, unpacked = MadeImages(self._cache_here, self._images), UnpackedImages(self._cache_here)
        tools = (await self.survey()).tools
        return [*await made.find_made(archives), *await asyncio.to_thread(unpacked.list_made, tools, archives)]

    async def measure_place(self, path: str) -> int:
        """Return the total size in bytes of the files below a directory."""
        return await asyncio.to_thread(measure, path)

    async def list_kept(self) -> Sequence[KeptFile]:
        """List the data that is kept here."""
        return await self._cache_here.list_kept()

    async def let_go(self, *digests: str, idle: timedelta = timedelta(0)) -> Sequence[str]:
        """Remove data that no session has needed for `idle`."""
        return await self._cache_here.let_go([name_of(digest) for digest in digests], idle)

    async def sweep(self) -> Sequence[str]:
        """Remove data that hasn't been needed for long."""
        return await self.let_go(idle=self.unused)
