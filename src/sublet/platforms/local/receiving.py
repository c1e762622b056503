"""Receives what a mover or the unpacker writes by itself into an entry of this machine's cache.

Each attempt has a folder of its own in the entry. So what a dead process left there, or a silent one still writes, is
never published by another; only a tree that is complete is moved to where it is published from.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Event

from sublet.kernel.errors import PlatformRefused
from sublet.platforms.batch.far.unpacker import UnpackRefused, unpack
from sublet.platforms.claims import ServiceProcess
from sublet.platforms.local.cache_entry import LocalEntry
from sublet.platforms.local.cloning import remove

BEAT = 5.0  # seconds between heartbeats
CAME = "data"  # in the folder of an attempt: what is written; other files beside it are the mover's own


@asynccontextmanager
async def beating(entry: LocalEntry) -> AsyncIterator[None]:
    """Send heartbeats for an entry that is claimed."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(BEAT)
            with suppress(FileNotFoundError):
                os.utime(entry.claim_file)

    task = asyncio.create_task(beat())
    try:
        yield
    finally:
        task.cancel()


@asynccontextmanager
async def receiving(entry: LocalEntry, *, is_folder: bool, goes_on: bool = True) -> AsyncIterator[Path]:
    """Provide the path for a new folder; at the end, its content, or its only file, is what is published next.

    With `goes_on` it may already have what an interrupted attempt left. What a failed one wrote is removed.
    """
    room = await asyncio.to_thread(_open_room, entry, goes_on=goes_on)
    try:
        async with beating(entry):
            yield room / CAME
        await asyncio.to_thread(_take_in, entry, room, is_folder=is_folder)
    except Exception:  # but not when it was cancelled
        await asyncio.to_thread(shutil.rmtree, room, ignore_errors=True)
        raise


def _open_room(entry: LocalEntry, *, goes_on: bool) -> Path:
    """Make the folder of an attempt, of the latest that was interrupted if it goes on with that; remove the others."""
    room, left = entry.new_room(), entry.list_rooms()
    if goes_on and left:
        left.pop().rename(room)
    else:
        room.mkdir(mode=0o700)
    for other in left:
        shutil.rmtree(other, ignore_errors=True)
    return room


def _take_in(entry: LocalEntry, room: Path, *, is_folder: bool) -> None:
    """Move what came to where it is published from."""
    if entry.read_claim() != str(ServiceProcess.here()):
        raise PlatformRefused("Another process brings it, since this one was silent for too long.")
    came = room / CAME
    if not came.is_dir():
        raise PlatformRefused("nothing of it came")
    if is_folder:
        _open_folders(came)
        target = entry.part_folder
    else:
        [came, *others] = list(came.iterdir()) or [came]
        if others or came.is_symlink() or not came.is_file():
            raise PlatformRefused("it is not one file")
        target = entry.part("")
    remove(target)
    came.rename(target)
    shutil.rmtree(room, ignore_errors=True)


def _open_folders(top: Path) -> None:
    """Let this user list and remove all folders of a tree, whatever rights they have where they come from."""
    top.chmod(stat.S_IMODE(top.stat().st_mode) | stat.S_IRWXU)
    for folder, folders, _ in os.walk(top):
        for path in (Path(folder, name) for name in folders):
            if not path.is_symlink():
                path.chmod(stat.S_IMODE(path.stat().st_mode) | stat.S_IRWXU)


async def unpack_into(entry: LocalEntry, archive: Path) -> None:
    """Unpack an archive as what is published next; raise PlatformRefused if it can't or may not be unpacked."""
    cancelled = Event()

    def heed() -> None:
        if cancelled.is_set():
            raise UnpackRefused("nobody needs it any more")

    def write(target: Path) -> None:
        try:
            unpack(archive, target, heed)
        finally:
            if cancelled.is_set():  # nobody else waits for the end of this thread
                shutil.rmtree(target.parent, ignore_errors=True)

    async with receiving(entry, is_folder=True, goes_on=False) as target:
        try:
            await asyncio.to_thread(write, target)
        except UnpackRefused as refused:
            if isinstance(refused.__cause__, OSError):  # such as a full disk
                raise refused.__cause__ from refused
            raise PlatformRefused(str(refused)) from refused
        finally:
            cancelled.set()
