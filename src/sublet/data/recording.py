"""How long staging took, written down: of each transfer for the next estimate, and of a session for its owner."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Protocol

from sublet.data.model.roads import Road, TakenRoad
from sublet.data.model.throughput import LEAST_COUNTED, LEAST_SECONDS, Hop, TransferTimes

STAGED = "staged"  # this file in a session's directory says that all its data is there, and how many seconds it took


class TransferLog(Protocol):
    """Writes down how long transfers took."""

    async def record(self, source: str, system: str, hop: Hop, bytes: int, seconds: float) -> None:
        """Remember one that has ended."""
        ...


class HasTransferLog(Protocol):
    """Whoever knows where transfers are written down."""

    @property
    def transfers(self) -> TransferLog:
        """There."""
        ...


async def record_roads(context: HasTransferLog, system: str, roads: Sequence[TakenRoad]) -> None:
    """The same of what was moved on roads that lead to the system itself; what was there already was not moved."""
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
    """Write down how long it took; what nobody counted only if it took long enough that it was not there already."""
    for source, (count, seconds) in times.by_source.items():
        if count >= LEAST_COUNTED or (not count and seconds >= LEAST_SECONDS):
            await context.transfers.record(source, system, hop, count, seconds)


def find_staging_time(place: Path) -> timedelta | None:
    """How long it took to bring a session's data; None: nobody counted."""
    try:
        return timedelta(seconds=float((place / STAGED).read_text()))
    except (OSError, ValueError):
        return None
