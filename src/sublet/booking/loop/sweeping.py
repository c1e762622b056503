"""Leave nothing behind: what is on a system where this service is a guest, and no session needs, is removed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from sublet.booking.loop.context import LoopContext
from sublet.booking.loop.retention import forget_old
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.errors import LoginNeeded, PlatformRefused, PlatformUnreachable, SubletError
from sublet.kernel.log import log
from sublet.store.store import Store

OFTEN = timedelta(hours=1)  # how often each platform is swept
AGAIN = timedelta(minutes=2)  # after a try that found no open login
PAUSE = 5.0  # seconds between two looks whether one is due
APPS, OLD, SCRATCH = "apps/", "retention/", "scratch/"  # no platform is called so
SETTLED = timedelta(hours=1)  # something younger may belong to what is being done just now


@dataclass(frozen=True, slots=True)
class Swept:
    """What was removed."""

    sessions: tuple[str, ...]
    files: tuple[str, ...]  # shared ones, by their digests


async def sweep(
    platforms: KnownPlatforms, store: Store, name: str, age: timedelta = SETTLED, idle: timedelta | None = None
) -> Swept:
    """Remove what sessions left that are not known any more, or were cleaned; and shared files long unused.

    What sessions left counts from an `age` on, shared files from being `idle` for so long, else as the platform says.
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
        except PlatformRefused as error:  # what still runs is let run
            log.warning("sweep.refused", platform=name, session=key, why=error.message)
        else:
            gone.append(key)
    files = [] if idle is None else [*await platform.let_go(idle=idle)]
    swept = Swept(tuple(gone), (*files, *await platform.sweep()))
    if gone or swept.files:
        log.info("platform.swept", platform=name, sessions=gone, files=swept.files)
    return swept


class Archives(Protocol):
    """Keeps the code of apps."""

    async def sweep_apps(self, now: datetime) -> list[str]:
        """Remove code that nobody needs any more."""
        ...


class ExpiredScratch(Protocol):
    """Keeps people's scratch."""

    async def sweep(self, now: datetime) -> None:
        """Remove what was not used for its keep time."""
        ...


class Sweeper:
    """Sweeps every platform once in a while, beside the loop; without a login it waits for one."""

    def __init__(
        self,
        context: LoopContext,
        archives: Archives,
        scratch: ExpiredScratch,
        pause: float = PAUSE,
        again: timedelta = AGAIN,
    ) -> None:
        """Nothing was swept yet."""
        self._context, self._archives, self._scratch = context, archives, scratch
        self._pause, self._again = pause, again

    async def run(self) -> None:
        """Until it is stopped."""
        due: dict[str, float] = {}
        clock = asyncio.get_running_loop().time
        while True:
            for name in list(self._context.platforms.by_name):
                if due.get(name, 0) <= clock():
                    due[name] = clock() + (await self._sweep(name)).total_seconds()
            if due.get(SCRATCH, 0) <= clock():
                due[SCRATCH] = clock() + AGAIN.total_seconds()
                await self._sweep_scratch()
            if due.get(APPS, 0) <= clock():
                due[APPS] = clock() + OFTEN.total_seconds()
                await self._sweep_apps()
            if due.get(OLD, 0) <= clock():
                due[OLD] = clock() + OFTEN.total_seconds()
                await self._forget_old()
            await asyncio.sleep(self._pause)

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
        """Sweep one; when it is to be swept again."""
        try:
            await sweep(self._context.platforms, self._context.store, name)
        except (LoginNeeded, PlatformUnreachable):
            return self._again
        except (SubletError, OSError) as error:
            log.warning("sweep.failed", platform=name, why=str(error))
        return OFTEN
