"""Brokers that were added are platforms, as soon as they are recorded, by whichever process."""

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
    """A broker as the settings of the platform that it is."""
    return {"kind": "broker", "url": broker.url, "older": broker.is_older}


@dataclass
class BrokerPlatforms:
    """Knows which brokers there are."""

    store: Store

    noun = "broker"
    _seen: datetime | None = None
    _stamp: tuple[int, int] = NEVER

    async def find(self, now: datetime) -> tuple[dict[str, dict[str, Any]], dict[str, str]] | None:
        """The settings of each; None if they are as before, or were just looked at."""
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
        """Look at once when asked next; `changed`: also if they are the same as before."""
        self._seen = None
        if changed:
            self._stamp = NEVER

    async def prepare(self, platform: Platform, home: Path, values: Mapping[str, Any]) -> None:
        """There is nothing to do before one is opened."""
