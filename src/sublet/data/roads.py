"""Takes data to where a session runs, by the best road that there is: a cache, the system's own download, a stream."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol, runtime_checkable

from sublet.booking.model.request import Data
from sublet.data.curl_plans import plan_curl
from sublet.data.fetching import fetch_on_system
from sublet.data.journeys import Journey, bring_alone, publish_entry
from sublet.data.model.links import FileLink, LinkedFiles, can_be_known, name_entry
from sublet.data.model.roads import Road, TakenRoad
from sublet.data.sources import source_of
from sublet.data.streams import stream_files
from sublet.data.tasks import move_by_service
from sublet.data.unpacking import UNPACKED, have_unpacked
from sublet.kernel.log import log
from sublet.movers.arrival import missing
from sublet.movers.port import FindsLeft, LeftFiles, LiesOnSystems, Links, Policy, SourceChanged
from sublet.platforms.caching import CopiesOwn, EntryPhase, EntryState, HostAway, NoPython, NoWay, RunsTools

SMALL = 1 << 20  # bytes of files of this machine that go along with the session
LOOKS = 3  # at a source that changes while it is brought, or has other addresses


@runtime_checkable
class HasOtherAddresses(Protocol):
    """A mover whose files may be at several hosts."""

    def set_aside(self, host: str) -> bool:
        """Prefer addresses at other hosts from now on; whether that makes a difference."""
        ...


class OtherAddress(Exception):
    """The system can't reach where it was to be fetched from, and there is another address to be tried first."""


@dataclass(frozen=True)
class Arrival:
    """Data that is in the cache of a system now."""

    data: Data
    files: LinkedFiles
    entry: str  # empty: another session left it
    taken: TakenRoad
    left: LeftFiles | None = None


async def take_road(journey: Journey, data: Data, mover: Links) -> Arrival | None:
    """Have data in the cache of the system; None: it is to be brought here, and goes along with the session."""
    why = ""
    for _ in range(LOOKS):
        files = await mover.links(data)
        if is_small(files) or (journey.cache.is_here and not _is_worth_keeping(files)):
            return None
        check_amount(data, files, mover.policy.largest)
        entry = name_entry(files, journey.person, journey.session)
        try:
            have = partial(_have, journey, data, mover, files, entry)
            if data.unpack:
                name, taken = await have_unpacked(journey, data, entry, files.address, have)
                return Arrival(data, UNPACKED, name, taken)
            return Arrival(data, files, entry, await have())
        except OtherAddress:
            continue
        except SourceChanged as changed:
            why = str(changed)
    if journey.cache.is_here:  # its server may only contradict itself: then it is brought, and not kept
        return None
    raise missing(data, why)


def _is_worth_keeping(files: LinkedFiles) -> bool:
    """Whether this machine gains by keeping it: it is from elsewhere, and known again."""
    return can_be_known(files) and not any(link.url.startswith("file:") for link in files.links)


async def take_left(journey: Journey, data: Data, mover: FindsLeft) -> Arrival | None:
    """What another session left on the same system; None: it is elsewhere, and is brought from there."""
    left = await mover.find_left(data)
    if left.platform != journey.platform:
        return None
    links = [FileLink(place, f"session:{left.session}/{path}") for path, place in left.files]
    taken = TakenRoad(data.name, Road.LINKED, left.session[:8], left.size, 0.0)
    return Arrival(data, LinkedFiles(links, left.is_folder), "", taken, left)


async def take_own(journey: Journey, data: Data, mover: LiesOnSystems) -> Arrival | None:
    """What lies on the very system that needs it is copied there; None: it is elsewhere, or can't be."""
    cache, why = journey.cache, ""
    if data.unpack or not isinstance(cache, CopiesOwn):
        return None
    for _ in range(LOOKS):
        located = await mover.find_on(data, journey.platform)
        if located is None or not located[1].links:
            return None
        path, files = located
        check_amount(data, files, 0)
        entry, began = name_entry(files, journey.person, journey.session), time.monotonic()

        async def copy(_: Mapping[str, int], entry: str = entry, path: str = path, files: LinkedFiles = files) -> None:
            await cache.copy_own(entry, path, is_folder=files.is_folder)
            if await mover.find_on(data, journey.platform) != (path, files):
                raise SourceChanged("it changed while it was copied")
            await publish_entry(cache, entry, data, files)

        state, road = await cache.want(entry, journey.session, _label(data, files)), Road.CACHED
        try:
            if state.phase is not EntryPhase.THERE:
                await cache.make_room(files.size or 0)
                await bring_alone(cache, entry, journey.tell(f"copying {data.name} on {journey.platform}"), copy)
                road = Road.COPIED
        except SourceChanged as changed:
            why = str(changed)
            continue
        seconds = time.monotonic() - began
        return Arrival(data, files, entry, TakenRoad(data.name, road, "", files.size or 0, seconds))
    raise missing(data, why)


def is_small(files: LinkedFiles) -> bool:
    """Whether it is of this machine, and little enough to go along with a session."""
    is_here = all(link.url.startswith("file:") for link in files.links)
    return is_here and (files.size or 0) < SMALL


def check_amount(data: Data, files: LinkedFiles, largest: int) -> None:
    """DataNotThere if it is not what was asked for, or more than may come."""
    size = files.size
    if size is not None and data.size is not None and size != data.size:
        raise missing(data, f"it has {size} bytes, and {data.size} were expected")
    if size is not None and largest and size > largest:
        raise missing(data, f"it has more than {largest} bytes, the most that is downloaded here")


async def _have(journey: Journey, data: Data, mover: Links, files: LinkedFiles, entry: str) -> TakenRoad:
    began = time.monotonic()
    state = await journey.cache.want(entry, journey.session, _label(data, files))
    road, why = Road.CACHED, ""
    if state.phase is not EntryPhase.THERE:
        await journey.cache.make_room(files.size or 0)
        road, state, why = await _bring(journey, data, mover, files, entry)
    seconds = time.monotonic() - began
    source = source_of(data) if road is Road.MOVED else files.address
    return TakenRoad(data.name, road, source, files.size or state.done, seconds, why)


async def _bring(
    journey: Journey, data: Data, mover: Links, files: LinkedFiles, entry: str
) -> tuple[Road, EntryState, str]:
    """By the first road that leads there; and why none of the better ones does."""
    if journey.cache.is_here:
        return Road.HERE, await _stream(journey, data, mover, files, entry), ""
    reasons: list[str] = []
    for road, bring in ((Road.MOVED, move_by_service), (Road.THERE, _fetch)):
        try:
            return road, await bring(journey, data, mover, files, entry), "; ".join(reasons)
        except NoWay as no_way:
            if isinstance(mover, HasOtherAddresses) and isinstance(no_way, HostAway) and mover.set_aside(no_way.host):
                raise OtherAddress from no_way
            reasons += [str(no_way)] if str(no_way) else []
    why = "; ".join(reasons)
    log.info("data.no-way", session=journey.session, data=data.name, platform=journey.platform, why=why)
    return Road.STREAMED, await _stream(journey, data, mover, files, entry), why


def _label(data: Data, files: LinkedFiles) -> str:
    """What people call it, and where it comes from; nothing that opens it."""
    source = files.address or "this machine"
    return f"{data.name} from {source}" if files.is_folder else f"{files.links[0].path} from {source}"


async def _fetch(journey: Journey, data: Data, mover: Links, files: LinkedFiles, entry: str) -> EntryState:
    """Have the system fetch it, and look until it has; NoWay if it can't."""
    if not all(link.url.startswith(("http:", "https:")) for link in files.links):
        raise NoWay("it is on this machine" if files.links[0].url.startswith("file:") else "")
    start = partial(_start, journey, data, mover.policy, files, entry)
    publish = partial(publish_entry, journey.cache, entry, data, files)
    return await fetch_on_system(journey, data, files.links[0].host, entry, start, publish)


async def _start(journey: Journey, data: Data, policy: Policy, files: LinkedFiles, entry: str) -> None:
    """By the program in Python; where there is none that could run it, by the system's own curl."""
    cache = journey.cache
    try:
        await cache.fetch(entry, files, public_only=policy.public_only, largest=policy.largest)
    except NoPython as no_python:
        if not isinstance(cache, RunsTools):
            raise
        try:
            await cache.fetch_by(entry, await plan_curl(data, files, policy), largest=policy.largest)
        except HostAway:
            raise
        except NoWay as no_way:
            raise NoWay(f"{no_python}; {no_way}") from no_way


async def _stream(journey: Journey, data: Data, mover: Links, files: LinkedFiles, entry: str) -> EntryState:
    """Read it here and write it there, unless another does so already."""
    cache = journey.cache
    words = f"bringing {data.name}" if cache.is_here else f"streaming {data.name} to {journey.platform}"
    progress = journey.tell(words)

    async def stream(sizes: Mapping[str, int]) -> None:
        await stream_files(cache, entry, data, mover, files, sizes, progress)
        await publish_entry(cache, entry, data, files)

    return await bring_alone(cache, entry, progress, stream)
