"""Remembers for a moment what was looked up, so that many who ask for the same at once look once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any, Generic, TypeVar

T = TypeVar("T")
MOST = 1000


class BriefMemory(Generic[T]):
    """What was looked up, by its key; a look that failed is made again."""

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        """Nothing yet; everything is forgotten after so long."""
        self._seconds, self._clock = seconds, clock
        self._looks: dict[str, tuple[float, asyncio.Task[T]]] = {}

    async def recall(self, key: str, look: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What is known under this key, or what `look` finds; whoever comes meanwhile waits for the same look."""
        until, task = self._looks.get(key, (0.0, None))
        if task is None or until <= self._clock() or (task.done() and (task.cancelled() or task.exception())):
            if len(self._looks) >= MOST:
                self._looks.clear()
            task = asyncio.create_task(look())
            self._looks[key] = self._clock() + self._seconds, task
        return task.result() if task.done() else await asyncio.shield(task)

    def forget(self) -> None:
        """Look anew at everything."""
        self._looks.clear()
