"""The drains that count now, remembered for a second: every ask needs them, and accepting reads them anew."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sublet.booking.model.drain import Drain
from sublet.store import Store

FRESH = 1.0  # seconds until what another process has changed is seen


@dataclass
class DrainsSeen:
    """What this process last read of them."""

    _drains: Mapping[str, Drain] = field(default_factory=dict)
    _read_at: float = -math.inf  # by the monotonic clock

    async def read(self, store: Store, now: datetime) -> dict[str, Drain]:
        """The drains by platform, at most a second old."""
        if time.monotonic() - self._read_at > FRESH:
            began = time.monotonic()
            self._drains = await store.read(lambda tx: tx.drains.active(now))
            self._read_at = began
        return {name: drain for name, drain in self._drains.items() if drain.is_active(now)}

    def forget(self) -> None:
        """Something was changed here: the next ask reads anew."""
        self._read_at = -math.inf
