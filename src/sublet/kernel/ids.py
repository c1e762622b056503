"""Random ids, drawn from a pool: each call of os.urandom releases the GIL, so that all other threads run first."""

from __future__ import annotations

import os
import threading
from uuid import UUID

SUPPLY = 256  # ids that one call of os.urandom provides
SIZE = 16  # bytes of an id


class IdSupply:
    """A pool of unused random bytes; a forked process discards it and fills its own."""

    def __init__(self) -> None:
        """Start with an empty pool."""
        self._unused = b""
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._discard)

    def draw(self, count: int) -> list[str]:
        """Return `count` new UUIDs of version 4."""
        return [str(UUID(bytes=raw, version=4)) for raw in self._draw_raw(count)]

    def _draw_raw(self, count: int) -> list[bytes]:
        wanted = SIZE * count
        with self._lock:
            if len(self._unused) < wanted:
                self._unused += os.urandom(SIZE * max(SUPPLY, count))
            drawn, self._unused = self._unused[:wanted], self._unused[wanted:]
        return [drawn[at : at + SIZE] for at in range(0, wanted, SIZE)]

    def _discard(self) -> None:
        self._unused, self._lock = b"", threading.Lock()


draw_ids = IdSupply().draw
