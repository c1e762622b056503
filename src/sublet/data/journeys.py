"""A transfer's context, and the rule that only one session brings a cache entry while others wait for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from sublet.booking.model.request import Data
from sublet.data.model.links import LinkedFiles
from sublet.kernel.errors import DiskFull, PlatformRefused, SubletError
from sublet.movers.arrival import missing
from sublet.movers.port import Progress
from sublet.platforms.caching import DataCache, EntryPhase, EntryState

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0  # seconds between two polls
SOON = 10.0  # seconds until a program that fetches must have reported something


@dataclass(frozen=True)
class Journey:
    """Where data is taken, for which session and person."""

    cache: DataCache
    platform: str
    session: str
    person: str
    tell: Callable[[str], Progress]  # makes a progress callback from a text
    no_ways: dict[str, str] = field(default_factory=dict)  # names of data → why each could not take a road of its own


async def watch_entry(cache: DataCache, entry: str, progress: Progress) -> EntryState:
    """Poll a cache entry until it is complete, has come or failed, or no one brings it."""
    pause, seen = FIRST_PAUSE, time.monotonic()
    while True:
        state = await cache.look(entry)
        if state.phase in (EntryPhase.THERE, EntryPhase.FAILED, EntryPhase.CAME):
            return state
        if state.phase is EntryPhase.BUSY:
            progress(state.done, state.total or None)
            seen = time.monotonic()
        elif time.monotonic() - seen > SOON:
            return state
        heed_cancel()
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)


def heed_cancel() -> None:
    """Raise CancelledError if the session was cancelled while the system was being asked."""
    if (task := asyncio.current_task()) and task.cancelling():
        raise asyncio.CancelledError


async def bring_alone(
    cache: DataCache, entry: str, progress: Progress, bring: Callable[[Mapping[str, int]], Awaitable[None]]
) -> EntryState:
    """Bring an entry, given the sizes of the parts that have come, unless another session brings it already."""
    while (sizes := await cache.claim(entry)) is None:
        state = await watch_entry(cache, entry, progress)
        if state.phase is EntryPhase.THERE:
            return state
    try:
        await bring(sizes)
    except BaseException as error:
        with suppress(SubletError):
            await asyncio.shield(cache.give_up(entry, drop=isinstance(error, DiskFull)))
        raise
    return await cache.look(entry)


async def publish_entry(cache: DataCache, entry: str, data: Data, files: LinkedFiles) -> None:
    """Publish an entry for use; raise DataNotThere if its content isn't as expected."""
    try:
        await cache.publish(entry, files)
    except DiskFull:
        raise
    except PlatformRefused as error:
        raise missing(data, error.message) from error
