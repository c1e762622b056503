"""A transport that sends an answer's head and body with one system call instead of two."""

from __future__ import annotations

import asyncio
from typing import Any

ENOUGH = 1 << 14  # bytes of a write that is sent immediately, so that a long answer pauses if the client doesn't read


class JoinedWrites:
    """Collects writes until the next turn of the event loop, and passes everything else to the transport."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        """Start with nothing to send."""
        self.transport = transport
        self._loop = loop
        self._unsent: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send data in the next turn of the event loop, together with everything else written until then."""
        if not data:
            return
        if not self._unsent:
            self._loop.call_soon(self.flush)
        self._unsent.append(data)
        if len(data) >= ENOUGH:
            self.flush()

    def flush(self) -> None:
        """Send the collected data."""
        if self._unsent:
            data = b"".join(self._unsent)
            self._unsent.clear()
            self.transport.write(data)

    def close(self) -> None:
        """Send the collected data and close the transport."""
        self.flush()
        self.transport.close()

    def __getattr__(self, name: str) -> Any:
        """Pass everything else on to the transport."""
        return getattr(self.transport, name)
