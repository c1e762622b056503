"""Images that are unpacked before sessions need them, once for all, for tools that run a directory.

    kept/image-unpacked-ID/content    a marker that it is unpacked; sessions have a link to it
    kept/image-unpacked-ID/unpacked   the image's file system and its description (kinds/inside/image_unpacker.py)

These are all images that Charliecloud runs, and Singularity images that Podman runs.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sublet.kernel.log import log
from sublet.platforms.batch.kept import read_image_program
from sublet.platforms.caching import EntryPhase
from sublet.platforms.local.cache import LocalCache
from sublet.platforms.local.cloning import remove
from sublet.platforms.local.entry_making import make_alone, point
from sublet.platforms.local.images import FETCHING, SIF, STORES
from sublet.platforms.port import ArchiveReader

PREFIX = "image-unpacked-"
UNPACKED = "unpacked"
GROWTH = 3  # how many times larger than its file an image may be
CHARLIECLOUD, UNSQUASHFS = "charliecloud", "unsquashfs"
OF_SINGULARITY = ("podman", CHARLIECLOUD)  # tools that run the directory of a Singularity image


def name_link(path: str) -> str:
    """Return the name by which a session finds the unpacked image of a file; sessions compute the same name."""
    real = os.path.realpath(path)
    status = os.stat(real)
    return hashlib.sha256(f"{real}\n{status.st_size}\n{status.st_mtime_ns}".encode()).hexdigest()


def unpacks(tool: str, tools: Mapping[str, str]) -> bool:
    """Whether this tool runs directories that are unpacked from image files here."""
    return (tool == CHARLIECLOUD and "ch-run" in tools) or (tool in OF_SINGULARITY and tool in tools)


@dataclass
class UnpackedImages:
    """The unpacked images of this machine."""

    cache: LocalCache

    async def make(self, tools: Mapping[str, str], file: str, tool: str, archive: ArchiveReader, user: str) -> bool:
        """Unpack an image file once for all sessions, and return whether it is unpacked.

        If not, the session unpacks it.
        """
        id = await asyncio.to_thread(archive.find_id)
        if id and tool != CHARLIECLOUD:
            return False  # it has a store for archives
        unsquashfs = "" if id else tools.get(UNSQUASHFS, "")
        id = id or (await asyncio.to_thread(archive.find_squashed_id) if unsquashfs else "")
        if not id:
            return False
        entry = PREFIX + id.partition(":")[2]
        state = await self.cache.want(entry, user, f"{Path(file).name}, unpacked")
        size = await asyncio.to_thread(os.path.getsize, file)

        async def make() -> bool:
            return await self._unpack(file, entry, unsquashfs)

        if state.phase is not EntryPhase.THERE and not await make_alone(self.cache, entry, size * GROWTH, make):
            return False
        link = self.cache.home / "sessions" / user / f"image-{await asyncio.to_thread(name_link, file)}"
        await asyncio.to_thread(point, self.cache, link, entry)
        return True

    async def use(self, digest: str, target: Path, user: str) -> bool:
        """Link the image with this digest at `target` for a session; return False if none is unpacked."""
        entry = await asyncio.to_thread(self.find, digest)
        if not entry or (await self.cache.want(entry, user)).phase is not EntryPhase.THERE:
            return False
        await asyncio.to_thread(point, self.cache, target, entry)
        return True

    def list_there(self, tools: Mapping[str, str], images: Mapping[str, str]) -> list[str]:
        """Return which registry images, given with their names in caches, are unpacked, so that nothing must be pulled.

        If a tool with another form of images is installed, it is preferred, and nothing is returned.
        """
        if any(tool in tools for tool in (*STORES, *SIF)):
            return []
        return [image for image, name in images.items() if name and self.find(f"sha256:{name.rpartition('-')[2]}")]

    def find(self, digest: str) -> str:
        """Return the entry of the image with a digest; empty if there is none."""
        folder = self.cache.home / "kept"
        names = (path.name for path in folder.glob(f"{PREFIX}*") if digest in self._read(path).get("digests", ()))
        return next((name for name in names if self.cache.entry(name).is_whole()), "")

    def list_made(self, tools: Mapping[str, str], files: Mapping[str, ArchiveReader]) -> list[str]:
        """Return which image files are unpacked, or are run by a tool here as they are."""
        is_run = any(tool in tools for tool in SIF)
        has_store = any(tool in tools for tool in STORES)
        return [name for name, file in files.items() if self._has(file, is_run=is_run, has_store=has_store)]

    def _has(self, file: ArchiveReader, *, is_run: bool, has_store: bool) -> bool:
        archive = file.find_id()
        if is_run or (archive and has_store):
            return not archive  # an archive would have to be converted first
        id = archive or file.find_squashed_id()
        return bool(id) and self.cache.entry(PREFIX + id.partition(":")[2]).is_whole()

    def _read(self, folder: Path) -> dict[str, Any]:
        """Read the description of an unpacked image; empty if there is none."""
        try:
            about: dict[str, Any] = json.loads((folder / UNPACKED / "image.json").read_bytes())
        except (OSError, ValueError):
            return {}
        return about

    async def _unpack(self, file: str, entry: str, unsquashfs: str) -> bool:
        kept = self.cache.entry(entry)
        folder = kept.folder / UNPACKED
        await asyncio.to_thread(remove, folder)  # left by an interrupted try
        words = (sys.executable, "-I", "-", file, str(folder), unsquashfs)
        complaint = await _run(words, read_image_program("image_unpacker"))
        if complaint is not None:
            log.info("image.not-unpacked", file=file, why=complaint)
            await asyncio.to_thread(remove, folder)
            return False
        size = (await asyncio.to_thread(self._read, kept.folder)).get("size", 0)
        await asyncio.to_thread(kept.set_weight, size)
        await asyncio.to_thread(kept.part("").write_text, "unpacked\n")
        return True


async def _run(words: tuple[str, ...], program: bytes) -> str | None:
    """Run a Python program at low priority; return its error message, or None if it succeeded."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        "nice", *words, stdin=pipe, stdout=asyncio.subprocess.DEVNULL, stderr=pipe
    )
    try:
        async with asyncio.timeout(FETCHING):
            _, complaint = await process.communicate(program)
    except TimeoutError:
        return f"it took longer than {FETCHING} s"
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return complaint.decode(errors="replace")[-300:].strip() if process.returncode else None
