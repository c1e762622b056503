"""Measured transfers: recorded as they end, and read for later estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sublet.data.model.throughput import RECENT, Hop, Transfer
from sublet.kernel.clock import Clock
from sublet.store.store import Store

MOST = 2000  # the newest transfers to read
FRESH = timedelta(seconds=30)  # other service processes add transfers too


@dataclass
class Transfers:
    """The measured transfers of this service."""

    store: Store
    now: Clock
    _known: Sequence[Transfer] = ()
    _read: datetime | None = field(default=None, repr=False)

    async def record(self, source: str, system: str, hop: Hop, bytes: int, seconds: float) -> None:
        """Record a finished transfer."""
        transfer = Transfer(self.now(), source, system, hop, bytes, seconds)
        await self.store.write(lambda tx: tx.transfers.add(transfer))
        self._read = None

    async def list_recent(self) -> Sequence[Transfer]:
        """List the recent transfers, newest first."""
        now = self.now()
        if self._read is None or not self._read <= now < self._read + FRESH:
            self._known = await self.store.read(lambda tx: tx.transfers.since(now - RECENT, MOST))
            self._read = now
        return self._known
