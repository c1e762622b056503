"""Sweeping: removes what no session needs from systems on which this service is a guest."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from sublet.booking.loop.clock_watch import doubts_clock
from sublet.booking.loop.context import LoopContext
from sublet.booking.loop.retention import forget_old
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.errors import LoginNeeded, PlatformRefused, PlatformUnreachable, SubletError
from sublet.kernel.log import log
from sublet.store.store import Store

OFTEN = timedelta(hours=1)  # how often each platform is swept
AGAIN = timedelta(minutes=2)  # after a try without an open login
PAUSE = 5.0  # seconds between two checks whether a sweep is due
APPS, OLD, SCRATCH = "apps/", "retention/", "scratch/"  # no platform has such a name
SETTLED = timedelta(hours=1)  # something younger may belong to an operation in progress


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep removed."""

    sessions: tuple[str, ...]
    files: tuple[str, ...]  # shared files, by their digests


async def sweep(
    platforms: KnownPlatforms, store: Store, name: str, age: timedelta = SETTLED, idle: timedelta | None = None
) -> Swept:
    """Remove files of sessions that are unknown or were cleaned, and shared files that were unused for long.

    A session's files must be older than `age`. Shared files must have been unused for `idle`, or for as long as the
    platform's own settings say.
    """
    platform = platforms.get(name)
    left = await platform.list_left(age)
    known = await store.read(lambda tx: tx.sessions.with_files(left)) if left else set()
    gone = []
    for key in left:
        if key in known:
            continue
        try:
            await platform.clean(key)
        except PlatformRefused as error:  # it still runs
            log.warning("sweep.refused", platform=name, session=key, why=error.message)
        else:
            gone.append(key)
    files = [] if idle is None else [*await platform.let_go(idle=idle)]
    swept = Swept(tuple(gone), (*files, *await platform.sweep()))
    if gone or swept.files:
        log.info("platform.swept", platform=name, sessions=gone, files=swept.files)
    return swept


class Archives(Protocol):
    """The store of apps' code."""

    async def sweep_apps(self, now: datetime) -> list[str]:
        """Remove code that nobody needs any more."""
        ...


class ExpiredScratch(Protocol):
    """The store of people's scratch."""

    async def sweep(self, now: datetime) -> None:
        """Remove scratch that was unused for its keep time."""
        ...


class Sweeper:
    """Sweeps every platform once in a while, beside the loop; without a login it tries again soon."""

    def __init__(
        self,
        context: LoopContext,
        archives: Archives,
        scratch: ExpiredScratch,
        pause: float = PAUSE,
        again: timedelta = AGAIN,
    ) -> None:
        """Start with nothing swept."""
        self._context, self._archives, self._scratch = context, archives, scratch
        self._pause, self._again = pause, again

    async def run(self) -> None:
        """Sweep again and again, until cancelled."""
        due: dict[str, float] = {}
        clock = asyncio.get_running_loop().time
        while True:
            for name in list(self._context.platforms.by_name):
                if due.get(name, 0) <= clock():
                    due[name] = clock() + (await self._sweep(name)).total_seconds()
            removals = {
                SCRATCH: (AGAIN, self._sweep_scratch),
                APPS: (OFTEN, self._sweep_apps),
                OLD: (OFTEN, self._forget_old),
            }
            for name, (every, remove) in removals.items():
                if due.get(name, 0) <= clock():
                    due[name] = clock() + every.total_seconds()
                    if not await self._doubts_clock():
                        await remove()
            await asyncio.sleep(self._pause)

    async def _doubts_clock(self) -> bool:
        try:
            return await doubts_clock(self._context)
        except (SubletError, OSError) as error:
            log.warning("sweep.failed", platform="", why=str(error))
            return True

    async def _forget_old(self) -> None:
        try:
            await forget_old(self._context)
        except (SubletError, OSError) as error:
            log.warning("retention.failed", why=str(error))

    async def _sweep_scratch(self) -> None:
        try:
            await self._scratch.sweep(self._context.now())
        except (SubletError, OSError) as error:
            log.warning("sweep.failed", platform="", why=str(error))

    async def _sweep_apps(self) -> None:
        """Remove the code of apps that no version needs."""
        try:
            gone = await self._archives.sweep_apps(self._context.now())
        except (SubletError, OSError) as error:
            log.warning("sweep.failed", platform="", why=str(error))
        else:
            if gone:
                log.info("apps.swept", trees=gone)

    async def _sweep(self, name: str) -> timedelta:
        """Sweep one platform; return how long to wait before the next sweep."""
        try:
            await sweep(self._context.platforms, self._context.store, name)
        except (LoginNeeded, PlatformUnreachable):
            return self._again
        except (SubletError, OSError) as error:
            log.warning("sweep.failed", platform=name, why=str(error))
        return OFTEN
