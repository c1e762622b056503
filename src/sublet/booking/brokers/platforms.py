"""Makes a platform of each broker as soon as it is recorded, by whichever process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sublet.booking.model.brokers import KnownBroker
from sublet.platforms.port import Platform
from sublet.store.store import Store

EVERY = timedelta(seconds=1)
NEVER = (-1, -1)


def platform_settings(broker: KnownBroker) -> dict[str, Any]:
    """Return the platform settings that represent a broker."""
    return {"kind": "broker", "url": broker.url, "older": broker.is_older}


@dataclass
class BrokerPlatforms:
    """Finds the platforms that are brokers."""

    store: Store

    noun = "broker"
    _seen: datetime | None = None
    _stamp: tuple[int, int] = NEVER

    async def find(self, now: datetime) -> tuple[dict[str, dict[str, Any]], dict[str, str]] | None:
        """Return the platform settings of each broker; None if nothing has changed, or it was checked a moment ago."""
        if self._seen and abs(now - self._seen) < EVERY:
            return None
        self._seen = now
        stamp = await self.store.read(lambda tx: tx.brokers.stamp())
        if stamp == self._stamp:
            return None
        brokers = await self.store.read(lambda tx: tx.brokers.list())
        self._stamp = stamp
        return {broker.name: platform_settings(broker) for broker in brokers}, {}

    def look_again(self, *, changed: bool = False) -> None:
        """Check again at the next call; with `changed`, report the brokers even if they are the same."""
        self._seen = None
        if changed:
            self._stamp = NEVER

    async def prepare(self, platform: Platform, home: Path, values: Mapping[str, Any]) -> None:
        """Do nothing: a broker needs no preparation."""
