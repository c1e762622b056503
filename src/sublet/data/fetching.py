"""Has a system fetch data itself, with Sublet's program or one of its own tools, and waits until it is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from sublet.booking.model.request import Data
from sublet.data.journeys import Journey, bring_alone, watch_entry
from sublet.kernel.errors import DiskFull
from sublet.movers.arrival import missing
from sublet.movers.port import SourceChanged
from sublet.platforms.caching import EntryPhase, EntryState, HostAway, NoWay

STARTS = 3  # attempts with a program that ends without reporting anything


async def fetch_on_system(
    journey: Journey,
    data: Data,
    host: str,
    entry: str,
    start: Callable[[], Awaitable[None]],
    publish: Callable[[], Awaitable[None]],
) -> EntryState:
    """Start the program that fetches, wait for the entry, and publish it if needed.

    Raise NoWay if it can't be fetched.
    """
    cache, progress = journey.cache, journey.tell(f"{journey.platform} is fetching {data.name}")

    async def publish_whole(_: Mapping[str, int]) -> None:
        await publish()

    for _ in range(STARTS):
        await start()
        state = await watch_entry(cache, entry, progress)
        if state.phase is EntryPhase.THERE:
            return state
        if state.phase is EntryPhase.CAME:
            return await bring_alone(cache, entry, progress, publish_whole)
        if state.phase is EntryPhase.FAILED:
            explain_failure(journey, data, host, state)
    raise NoWay(f"what fetches on {journey.platform} ended early")


def explain_failure(journey: Journey, data: Data, host: str, state: EntryState) -> None:
    """Raise the error that a failed fetch stands for, which says whether another road may help."""
    if state.kind == "changed":
        raise SourceChanged(state.why)
    if state.kind == "full":
        raise DiskFull(platform=journey.platform, why=state.why)
    if state.kind in ("wrong", "cut", "private"):
        raise missing(data, state.why)
    if state.kind == "unreachable":
        why = f"{journey.platform} can't reach it ({state.why})"
        journey.cache.note_no_way(host, why)
        raise HostAway(why, host)
    raise NoWay(f"{journey.platform} could not fetch it ({state.why})")
