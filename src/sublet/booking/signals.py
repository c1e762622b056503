"""Signals inside one process: there is work for the loop, room came free, something was written to the events."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

from sublet.booking.event_feed import EventFeed


@dataclass
class Signals:
    """Wakes the loop and those who wait for events."""

    nudged: asyncio.Event = field(default_factory=asyncio.Event)  # there is work for the loop
    freed: set[str] = field(default_factory=set)  # platforms on which room came free, or something began to wait
    feed: EventFeed = field(default_factory=EventFeed)  # who watches events
    _happened: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def announce(self) -> None:
        """Wake the loop, and those who wait for events."""
        self.nudged.set()
        self.feed.wake()
        async with self._happened:
            self._happened.notify_all()

    async def wait(self, seconds: float) -> None:
        """Wait until something happens in this process, or for so long: another process may have done it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._happened:
                await self._happened.wait()
