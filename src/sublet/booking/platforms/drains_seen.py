"""The current drains, cached for a second: every ask needs them, and accepting reads them anew."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sublet.booking.model.drain import Drain
from sublet.store import Store

FRESH = 1.0  # seconds until changes of another process are seen


@dataclass
class DrainsSeen:
    """The drains that this process read last."""

    _drains: Mapping[str, Drain] = field(default_factory=dict)
    _read_at: float = -math.inf  # by the monotonic clock

    async def read(self, store: Store, now: datetime) -> dict[str, Drain]:
        """Return the drains by platform, at most a second old."""
        if time.monotonic() - self._read_at > FRESH:
            began = time.monotonic()
            self._drains = await store.read(lambda tx: tx.drains.active(now))
            self._read_at = began
        return {name: drain for name, drain in self._drains.items() if drain.is_active(now)}

    def forget(self) -> None:
        """Clear the cache, because something was changed here."""
        self._read_at = -math.inf
