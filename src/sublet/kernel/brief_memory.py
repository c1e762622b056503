"""A short-lived cache that lets concurrent callers share one lookup of the same key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any, Generic, TypeVar

T = TypeVar("T")
MOST = 1000


class BriefMemory(Generic[T]):
    """Lookup results by key, cached for some seconds; a failed lookup is repeated by the next caller."""

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        """Start empty; entries expire after `seconds`."""
        self._seconds, self._clock = seconds, clock
        self._looks: dict[str, tuple[float, asyncio.Task[T]]] = {}

    async def recall(self, key: str, look: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the cached value of a key, or the result of `look`; concurrent callers wait for the same call."""
        until, task = self._looks.get(key, (0.0, None))
        if task is None or until <= self._clock() or (task.done() and (task.cancelled() or task.exception())):
            if len(self._looks) >= MOST:
                self._looks.clear()
            task = asyncio.create_task(look())
            self._looks[key] = self._clock() + self._seconds, task
        return task.result() if task.done() else await asyncio.shield(task)

    def forget(self) -> None:
        """Clear the cache."""
        self._looks.clear()
