"""Making an entry of this machine's cache, of which others wait, and letting a session see it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from sublet.data.model.links import FileLink, LinkedFiles
from sublet.kernel.errors import DiskFull
from sublet.platforms.caching import EntryPhase
from sublet.platforms.local.cache import BEAT, LocalCache
from sublet.platforms.local.os_errors import translate_os_errors

LOOK_AGAIN = 0.3  # seconds, while another makes the same
FILE = LinkedFiles([FileLink("image", "file:image")])


async def is_file() -> bool:
    """What is a file is of use as long as it is there."""
    return True


async def make_alone(
    cache: LocalCache,
    entry: str,
    size: int,
    make: Callable[[], Awaitable[bool]],
    is_usable: Callable[[], Awaitable[bool]] = is_file,
) -> bool:
    """Make it, while others who need it wait; one that is there and of no use is made again."""
    with suppress(DiskFull):  # a tool's own store may be on another disk; else the tool says so
        await cache.make_room(size)
    while await cache.claim(entry) is None:
        if (await cache.look(entry)).phase is EntryPhase.THERE:
            if await is_usable():
                return True
            await asyncio.to_thread(cache.entry(entry).withdraw)
        await asyncio.sleep(LOOK_AGAIN)
    try:
        async with _beating(cache, entry):
            is_made = await make()
        if is_made:
            await cache.publish(entry, FILE)
    finally:
        await asyncio.shield(cache.give_up(entry, drop=True))
    return is_made


@asynccontextmanager
async def _beating(cache: LocalCache, entry: str) -> AsyncIterator[None]:
    """Let others see that someone makes it."""

    async def beat() -> None:
        while True:
            await asyncio.sleep(BEAT)
            cache.entry(entry).claim_file.touch()

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()


def point(cache: LocalCache, link: Path, entry: str) -> None:
    """Let a session find an entry at a link."""
    with translate_os_errors(cache.platform), suppress(FileExistsError):
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(cache.entry(entry).content)
