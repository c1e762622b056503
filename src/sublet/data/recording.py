"""Records how long staging took: each transfer for later estimates, and the whole for a session's owner."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from sublet.data.model.roads import Road, TakenRoad
from sublet.data.model.throughput import LEAST_COUNTED, LEAST_SECONDS, Hop, TransferTimes

STAGED = "staged"  # in a session's directory: says that all data is staged, and how many seconds it took


class TransferLog(Protocol):
    """Records how long transfers took."""

    async def record(self, source: str, system: str, hop: Hop, bytes: int, seconds: float) -> None:
        """Record a finished transfer."""
        ...


class HasTransferLog(Protocol):
    """Anything that has a transfer log."""

    @property
    def transfers(self) -> TransferLog:
        """The transfer log."""
        ...


async def record_roads(context: HasTransferLog, system: str, roads: Sequence[TakenRoad]) -> None:
    """Record the times of data that took a road to the system; data that was there already is left out."""
    hops = {
        Road.MOVED: Hop.THERE,
        Road.THERE: Hop.THERE,
        Road.STREAMED: Hop.STREAMED,
        Road.HERE: Hop.HERE,
    }
    for road, hop in hops.items():
        times = TransferTimes()
        for taken in roads:
            if taken.road is road:
                times.note(taken.source, taken.bytes, taken.seconds)
        await record_times(context, system, times, hop)


async def record_times(context: HasTransferLog, system: str, times: TransferTimes, hop: Hop) -> None:
    """Record transfer times; an uncounted transfer only if it took long enough not to come from a cache."""
    for source, (count, seconds) in times.by_source.items():
        if count >= LEAST_COUNTED or (not count and seconds >= LEAST_SECONDS):
            await context.transfers.record(source, system, hop, count, seconds)


def find_staging_time(place: Path) -> timedelta | None:
    """Return how long a session's staging took, or None if it wasn't recorded."""
    try:
        return timedelta(seconds=float((place / STAGED).read_text()))
    except (OSError, ValueError):
        return None
