"""Transfers of files to and from sessions' machines in the background; a failed one is tried again at a later look."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from sublet.kernel.errors import SubletError
from sublet.kernel.log import log
from sublet.platforms.openstack.door import FAILURES, MachineDoors
from sublet.platforms.openstack.session import VmSession

AGAIN = 5.0  # seconds after which a failed transfer is tried again
PAUSE = 0.5  # seconds between two reads of a console while results are written to it
Listen = Callable[[VmSession], Awaitable[str | None]]


@dataclass
class SessionTransfers:
    """The transfers under way, one for each session, and what prevents them."""

    doors: MachineDoors
    name_of: Callable[[str], str]
    listen: Listen
    _working: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _troubles: dict[str, tuple[float, str]] = field(default_factory=dict)  # since when, and the last message
    _failed: dict[str, float] = field(default_factory=dict)  # when a try failed last

    def bring(self, session: VmSession) -> None:
        """Send a session's files to its machine."""
        if self._is_free(session.key):
            self._begin(session, self.doors.bring(session, self.name_of(session.key)))

    def fetch(self, session: VmSession) -> None:
        """Fetch a session's results."""
        if self._is_free(session.key):
            self._begin(session, self._fetch_left(session))

    def find_trouble(self, key: str, longer_than: float = -1.0) -> str:
        """Return why no transfer has succeeded for this many seconds; empty if that isn't so."""
        since, words = self._troubles.get(key, (time.monotonic(), ""))
        return words if time.monotonic() - since > longer_than else ""

    def _is_free(self, key: str) -> bool:
        return key not in self._working and time.monotonic() - self._failed.get(key, float("-inf")) > AGAIN

    async def forget(self, key: str) -> None:
        """Stop a session's transfers and connections."""
        if task := self._working.get(key):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self._troubles.pop(key, None)
        self._failed.pop(key, None)
        await self.doors.leave(key)

    async def close(self) -> None:
        """Stop; incomplete transfers are resumed at the next start."""
        tasks = [*self._working.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.doors.close()

    def _begin(self, session: VmSession, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._work(session, work))
        self._working[session.key] = task
        task.add_done_callback(lambda done: self._working.pop(session.key, None))

    async def _work(self, session: VmSession, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
            self._troubles.pop(session.key, None)
        except (*FAILURES, OSError) as error:
            words = (error.message if isinstance(error, SubletError) else str(error)).partition("\n")[0]
            self._failed[session.key] = time.monotonic()
            since = self._troubles.get(session.key, (time.monotonic(), ""))[0]
            self._troubles[session.key] = (since, words)
            log.warning("openstack.unreached", platform=session.platform, session=session.key, why=words)

    async def _fetch_left(self, session: VmSession) -> None:
        """Fetch results by ssh if possible; otherwise read the console continuously until all is here."""
        end = session.heard.end or {}
        if end.get("fetched"):
            try:
                return await self.doors.fetch(session, self.name_of(session.key), end["size"], end["digest"])
            except FAILURES:
                if not end["pieces"]:
                    raise
        while session.count_missing(end):
            if await self.listen(session) is None:
                return
            await asyncio.sleep(PAUSE)
