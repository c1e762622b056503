"""The sessions that this process drives to their ends: each has one driver, and is taken over if its process dies."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sublet.kernel.errors import PlatformUnreachable, SubletError
from sublet.kernel.log import log
from sublet.platforms.jupyter.driving import Drive

LOOK = 2.0  # seconds between two searches for sessions without a driver
SLOWEST_RELEASE = 60.0  # seconds
SOONEST, LATEST = 0.3, 30.0  # seconds until a failed session is tried again


class Drivers:
    """The sessions that are driven here."""

    def __init__(self, platform: str, home: Path, make: Callable[[str], Drive]) -> None:
        """Set up without driving anything."""
        self._platform, self._home, self._make = platform, home, make
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._looking: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to drive all sessions that are under way."""
        self._looking = asyncio.create_task(self._look(), name=f"{self._platform}: sessions")

    async def stop(self) -> None:
        """Stop driving; running sessions continue, and are taken up again later."""
        tasks = [*self._tasks.values(), *([self._looking] if self._looking else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()

    def take(self, key: str) -> None:
        """Drive a session, unless that is already done."""
        if key not in self._tasks or self._tasks[key].done():
            self._tasks[key] = asyncio.create_task(self._drive(key), name=f"{self._platform}: {key}")

    async def join(self, key: str) -> None:
        """Wait until nothing of a session is left there; raise PlatformUnreachable if that takes too long."""
        self.take(key)
        try:
            async with asyncio.timeout(SLOWEST_RELEASE):
                while (self._home / "held" / key).exists():  # noqa: ASYNC110 - another process may drive it
                    await asyncio.sleep(SOONEST)
        except TimeoutError as error:
            raise PlatformUnreachable(platform=self._platform, why="what it has there is not gone yet") from error

    async def _look(self) -> None:
        while True:
            for key in await asyncio.to_thread(os.listdir, self._home / "held"):
                self.take(key)
            for key in [key for key, task in self._tasks.items() if task.done()]:
                del self._tasks[key]
            await asyncio.sleep(LOOK)

    async def _drive(self, key: str) -> None:
        """Drive a session to its end, however often it is interrupted; do nothing if another process does."""
        with self._claim(key) as is_ours:
            pause = SOONEST
            while is_ours:
                drive = self._make(key)
                try:
                    await drive.run()
                    return
                except SubletError as error:
                    words = error.sentences
                    log.info("jupyter.interrupted", platform=self._platform, session=key, why=error.message)
                except OSError as error:
                    words = f"this machine: {error}"
                    log.warning("jupyter.interrupted", platform=self._platform, session=key, why=str(error))
                except Exception as error:  # a server may answer anything, and other sessions must go on
                    words = f"{type(error).__name__}: {error}"
                    log.exception("jupyter.broken", platform=self._platform, session=key)
                if not drive.session.ended and drive.session.root.is_dir():
                    drive.session.note_condition(words)
                await asyncio.sleep(pause)
                pause = min(2 * pause, LATEST)

    @contextmanager
    def _claim(self, key: str) -> Iterator[bool]:
        """Whether this process drives a session, until it lets go or dies."""
        path = self._home / "locks" / key
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            is_held = (self._home / "held" / key).exists()
            yield is_held
            if not (self._home / "held" / key).exists():
                path.unlink(missing_ok=True)
        finally:
            os.close(file)
