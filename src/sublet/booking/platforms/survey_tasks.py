"""Running surveys: at most one for each platform, which continues when nobody waits for it any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from sublet.platforms.port import Platform, Survey

LONGEST = 120.0  # seconds after which a survey is given up, so that the next one can be tried


class SurveyTasks:
    """Shares one survey of a platform between all callers."""

    def __init__(self) -> None:
        """Start without surveys."""
        self._tasks: dict[int, asyncio.Task[Survey]] = {}  # by the identity of the platform, which the task keeps alive

    async def join(self, platform: Platform, begin: Callable[[], Coroutine[Any, Any, Survey]]) -> Survey:
        """Wait for the survey of this platform, started if none is running; it continues if the caller is cancelled."""
        return await asyncio.shield(self.start(platform, begin))

    def start(self, platform: Platform, begin: Callable[[], Coroutine[Any, Any, Survey]]) -> asyncio.Task[Survey]:
        """Start a survey in the background, unless one is running; return its task."""
        task = self._tasks.get(id(platform))
        if task is None or task.done():
            task = asyncio.create_task(begin(), name=f"survey {platform.name}")
            self._tasks[id(platform)] = task
            task.add_done_callback(lambda done: self._forget(id(platform), done))
        return task

    async def stop(self) -> None:
        """Cancel the running surveys, because the service ends."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, key: int, task: asyncio.Task[Survey]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]
        if not task.cancelled():
            task.exception()  # callers have seen it; if there were none, the next survey reports it
