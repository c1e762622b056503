"""Surveys that are under way: one of each platform at most, which goes on when nobody waits for it any more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from sublet.platforms.port import Platform, Survey

LONGEST = 120.0  # seconds after which a survey is given up, so that the next one can be tried


class SurveyTasks:
    """Shares one survey of a platform between all who want it."""

    def __init__(self) -> None:
        """None is under way."""
        self._tasks: dict[int, asyncio.Task[Survey]] = {}  # by the identity of the platform, which the task keeps alive

    async def join(self, platform: Platform, begin: Callable[[], Coroutine[Any, Any, Survey]]) -> Survey:
        """Wait for the survey of this platform, begun if none is under way; it goes on if the caller is cancelled."""
        return await asyncio.shield(self.start(platform, begin))

    def start(self, platform: Platform, begin: Callable[[], Coroutine[Any, Any, Survey]]) -> asyncio.Task[Survey]:
        """Begin a survey in the background, unless one is under way."""
        task = self._tasks.get(id(platform))
        if task is None or task.done():
            task = asyncio.create_task(begin(), name=f"survey {platform.name}")
            self._tasks[id(platform)] = task
            task.add_done_callback(lambda done: self._forget(id(platform), done))
        return task

    async def stop(self) -> None:
        """End those under way: the service ends."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget(self, key: int, task: asyncio.Task[Survey]) -> None:
        if self._tasks.get(key) is task:
            del self._tasks[key]
        if not task.cancelled():
            task.exception()  # whoever waited was told; if nobody did, the next survey tells
