"""Signals within one process: there is work for the loop, room came free, or events were written."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field

from sublet.booking.event_feed import EventFeed


@dataclass
class Signals:
    """Wakes the loop, and everyone who waits for events."""

    nudged: asyncio.Event = field(default_factory=asyncio.Event)  # there is work for the loop
    freed: set[str] = field(default_factory=set)  # platforms on which room came free, or a session began to wait
    feed: EventFeed = field(default_factory=EventFeed)  # for those who watch events
    _happened: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def announce(self) -> None:
        """Wake the loop, and everyone who waits for events."""
        self.nudged.set()
        self.feed.wake()
        async with self._happened:
            self._happened.notify_all()

    async def wait(self, seconds: float) -> None:
        """Wait until something happens in this process, or for this long, since another process may have acted."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._happened:
                await self._happened.wait()
