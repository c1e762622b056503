"""A transport that sends the head of an answer together with its body, by one call of the system instead of two."""

from __future__ import annotations

import asyncio
from typing import Any

ENOUGH = 1 << 14  # bytes that are sent at once, so that a long answer still learns when the other side doesn't read


class JoinedWrites:
    """Collects what is written until the event loop comes round; all else is the transport's own."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        """Nothing is written yet."""
        self.transport = transport
        self._loop = loop
        self._unsent: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send it soon, with what follows at once."""
        if not data:
            return
        if not self._unsent:
            self._loop.call_soon(self.flush)
        self._unsent.append(data)
        if len(data) >= ENOUGH:
            self.flush()

    def flush(self) -> None:
        """Send what was collected."""
        if self._unsent:
            data = b"".join(self._unsent)
            self._unsent.clear()
            self.transport.write(data)

    def close(self) -> None:
        """Send the rest, and close it."""
        self.flush()
        self.transport.close()

    def __getattr__(self, name: str) -> Any:
        """Whatever else a transport can."""
        return getattr(self.transport, name)
