"""Makes an entry of this machine's cache while others wait for it, and shows it to a session."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from sublet.data.model.links import FileLink, LinkedFiles
from sublet.kernel.errors import DiskFull
from sublet.platforms.caching import EntryPhase
from sublet.platforms.local.cache import LocalCache
from sublet.platforms.local.os_errors import translate_os_errors
from sublet.platforms.local.receiving import beating

LOOK_AGAIN = 0.3  # seconds, while another process makes the same entry
FILE = LinkedFiles([FileLink("image", "file:image")])


async def is_file() -> bool:
    """Return True: an entry that is a file is usable as long as it exists."""
    return True


async def make_alone(
    cache: LocalCache,
    entry: str,
    size: int,
    make: Callable[[], Awaitable[bool]],
    is_usable: Callable[[], Awaitable[bool]] = is_file,
) -> bool:
    """Make an entry unless another process does, for which this waits; an entry that isn't usable is made again."""
    with suppress(DiskFull):  # a tool's own store may be on another disk; if not, the tool reports it
        await cache.make_room(size)
    while await cache.claim(entry) is None:
        if (await cache.look(entry)).phase is EntryPhase.THERE:
            if await is_usable():
                return True
            await asyncio.to_thread(cache.entry(entry).withdraw)
        await asyncio.sleep(LOOK_AGAIN)
    try:
        async with beating(cache.entry(entry)):
            is_made = await make()
        if is_made:
            await cache.publish(entry, FILE)
    finally:
        await asyncio.shield(cache.give_up(entry, drop=True))
    return is_made


def point(cache: LocalCache, link: Path, entry: str) -> None:
    """Link a path in a session's directory to an entry."""
    with translate_os_errors(cache.platform), suppress(FileExistsError):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(cache.entry(entry).content)
