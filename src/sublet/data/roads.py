"""Takes data to where a session runs, by the best road that there is: a cache, the system's own download, a stream."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from sublet.booking.model.request import Data
from sublet.data.model.links import FileLink, LinkedFiles, name_entry
from sublet.data.model.roads import Road, TakenRoad
from sublet.data.streams import stream_files
from sublet.kernel.errors import DiskFull, PlatformRefused, SubletError
from sublet.kernel.log import log
from sublet.movers.arrival import missing
from sublet.movers.port import FindsLeft, LeftFiles, Links, Progress, SourceChanged
from sublet.platforms.caching import DataCache, EntryPhase, EntryState, NoWay

SMALL = 1 << 20  # bytes of files of this machine that go along with the session
LOOKS = 3  # at a source that changes while it is brought
STARTS = 3  # of a program that fetches and ends without a word
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0  # seconds between two looks at how far it is
SOON = 10.0  # seconds within which a program that fetches has to show itself


@dataclass(frozen=True)
class Journey:
    """For whom data is taken where."""

    cache: DataCache
    platform: str
    session: str
    person: str
    tell: Callable[[str], Progress]  # where it is told how far it is, by what is being done


@dataclass(frozen=True)
class Arrival:
    """Data that is in the cache of a system now."""

    data: Data
    files: LinkedFiles
    entry: str  # empty: another session left it
    taken: TakenRoad
    left: LeftFiles | None = None


async def take_road(journey: Journey, data: Data, mover: Links) -> Arrival | None:
    """Have data in the cache of the system; None: it is small and of this machine, and goes along with the session."""
    for _ in range(LOOKS):
        files = await mover.links(data)
        if _is_small(files):
            return None
        _check(data, files, mover.policy.largest)
        entry = name_entry(files, journey.person, journey.session)
        try:
            return Arrival(data, files, entry, await _have(journey, data, mover, files, entry))
        except SourceChanged as changed:
            why = str(changed)
    raise missing(data, why)


async def take_left(journey: Journey, data: Data, mover: FindsLeft) -> Arrival | None:
    """What another session left on the same system; None: it is elsewhere, and is brought from there."""
    left = await mover.find_left(data)
    if left.platform != journey.platform:
        return None
    links = [FileLink(place, f"session:{left.session}/{path}") for path, place in left.files]
    taken = TakenRoad(data.name, Road.LINKED, left.session[:8], left.size, 0.0)
    return Arrival(data, LinkedFiles(links, left.is_folder), "", taken, left)


def _is_small(files: LinkedFiles) -> bool:
    is_here = all(link.url.startswith("file:") for link in files.links)
    return is_here and (files.size or 0) < SMALL


def _check(data: Data, files: LinkedFiles, largest: int) -> None:
    """DataNotThere if it is not what was asked for, or more than may come."""
    size = files.size
    if size is not None and data.size is not None and size != data.size:
        raise missing(data, f"it has {size} bytes, and {data.size} were expected")
    if size is not None and largest and size > largest:
        raise missing(data, f"it has more than {largest} bytes, the most that is downloaded here")


async def _have(journey: Journey, data: Data, mover: Links, files: LinkedFiles, entry: str) -> TakenRoad:
    began = time.monotonic()
    state = await journey.cache.want(entry, journey.session)
    road, why = Road.CACHED, ""
    if state.phase is not EntryPhase.THERE:
        await journey.cache.make_room(files.size or 0)
        try:
            road, state = Road.THERE, await _fetch(journey, data, mover, files, entry)
        except NoWay as no_way:
            road, why = Road.STREAMED, str(no_way)
            log.info("data.no-way", session=journey.session, data=data.name, platform=journey.platform, why=why)
            state = await _stream(journey, data, mover, files, entry)
    seconds = time.monotonic() - began
    return TakenRoad(data.name, road, files.address, files.size or state.done, seconds, why)


async def _fetch(journey: Journey, data: Data, mover: Links, files: LinkedFiles, entry: str) -> EntryState:
    """Have the system fetch it, and look until it has; NoWay if it can't."""
    if not all(link.url.startswith(("http:", "https:")) for link in files.links):
        raise NoWay("it is on this machine")
    policy, progress = mover.policy, journey.tell(f"{journey.platform} is fetching {data.name}")
    for _ in range(STARTS):
        await journey.cache.fetch(entry, files, public_only=policy.public_only, largest=policy.largest)
        state = await watch_entry(journey.cache, entry, progress)
        if state.phase is EntryPhase.THERE:
            return state
        if state.phase is EntryPhase.FAILED:
            _explain(journey, data, files, state)
    raise NoWay(f"what fetches on {journey.platform} ended early")


async def watch_entry(cache: DataCache, entry: str, progress: Progress) -> EntryState:
    """Look again and again, until it is there, or failed, or nobody brings it."""
    pause, seen = FIRST_PAUSE, time.monotonic()
    while True:
        state = await cache.look(entry)
        if state.phase in (EntryPhase.THERE, EntryPhase.FAILED):
            return state
        if state.phase is EntryPhase.BUSY:
            progress(state.done, state.total or None)
            seen = time.monotonic()
        elif time.monotonic() - seen > SOON:
            return state
        if (task := asyncio.current_task()) and task.cancelling():
            raise asyncio.CancelledError  # someone cancelled the session while the system was asked
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)


def _explain(journey: Journey, data: Data, files: LinkedFiles, state: EntryState) -> None:
    """Raise what a failure means: another road may help, or none."""
    if state.kind == "changed":
        raise SourceChanged(state.why)
    if state.kind == "full":
        raise DiskFull(platform=journey.platform, why=state.why)
    if state.kind in ("wrong", "cut", "private"):
        raise missing(data, state.why)
    if state.kind == "unreachable":
        journey.cache.note_no_way(files.links[0].host, f"{journey.platform} can't reach it ({state.why})")
    reach = "can't reach it" if state.kind == "unreachable" else "could not fetch it"
    raise NoWay(f"{journey.platform} {reach} ({state.why})")


async def _stream(journey: Journey, data: Data, mover: Links, files: LinkedFiles, entry: str) -> EntryState:
    """Read it here and write it there, unless another does so already."""
    cache, progress = journey.cache, journey.tell(f"streaming {data.name} to {journey.platform}")
    while (sizes := await cache.claim(entry)) is None:
        state = await watch_entry(cache, entry, progress)
        if state.phase is EntryPhase.THERE:
            return state
    try:
        await stream_files(cache, entry, data, mover, files, sizes, progress)
        try:
            await cache.publish(entry, files)
        except DiskFull:
            raise
        except PlatformRefused as error:
            raise missing(data, error.message) from error
    except BaseException as error:
        with suppress(SubletError):
            await asyncio.shield(cache.give_up(entry, drop=isinstance(error, DiskFull)))
        raise
    return await cache.look(entry)
