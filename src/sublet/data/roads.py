"""Takes data to where a session runs by the best road: from a cache, fetched by the system itself, or streamed."""

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

SMALL = 1 << 20  # bytes: smaller files of this machine travel with the session
LOOKS = 3  # attempts with a source that changes meanwhile, or that has other addresses


@runtime_checkable
class HasOtherAddresses(Protocol):
    """A mover whose files may be at several hosts."""

    def set_aside(self, host: str) -> bool:
        """Avoid a host from now on; return whether other addresses are left."""
        ...


class OtherAddress(Exception):
    """The system can't reach where it was to be fetched from, and there is another address to be tried first."""


@dataclass(frozen=True)
class Arrival:
    """Data that is in a system's cache now."""

    data: Data
    files: LinkedFiles
    entry: str  # empty: another session left it
    taken: TakenRoad
    left: LeftFiles | None = None


async def take_road(journey: Journey, data: Data, mover: Links) -> Arrival | None:
    """Bring data into the system's cache.

    Return None if it must be brought here and travel with the session instead.
    """
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
    if journey.cache.is_here:  # the server may only contradict itself: the data is then brought without being cached
        return None
    raise missing(data, why)


def _is_worth_keeping(files: LinkedFiles) -> bool:
    """Whether this machine's cache should keep the files: they are remote, and can be recognised later."""
    return can_be_known(files) and not any(link.url.startswith("file:") for link in files.links)


async def take_left(journey: Journey, data: Data, mover: FindsLeft) -> Arrival | None:
    """Use what another session left on the same system; return None if it is elsewhere."""
    left = await mover.find_left(data)
    if left.platform != journey.platform:
        return None
    links = [FileLink(place, f"session:{left.session}/{path}") for path, place in left.files]
    taken = TakenRoad(data.name, Road.LINKED, left.session[:8], left.size, 0.0)
    return Arrival(data, LinkedFiles(links, left.is_folder), "", taken, left)


async def take_own(journey: Journey, data: Data, mover: LiesOnSystems) -> Arrival | None:
    """Copy data that is on the same system already; return None if it is elsewhere or can't be copied."""
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
    """Whether the files are on this machine and small enough to travel with a session."""
    is_here = all(link.url.startswith("file:") for link in files.links)
    return is_here and (files.size or 0) < SMALL


def check_amount(data: Data, files: LinkedFiles, largest: int) -> None:
    """Raise DataNotThere if the size differs from the request's, or exceeds the limit."""
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
    """Bring an entry by the best road that works; return also why better roads failed."""
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
    """Return a label for people: the data's name and source, without secrets."""
    source = files.address or "this machine"
    return f"{data.name} from {source}" if files.is_folder else f"{files.links[0].path} from {source}"


async def _fetch(journey: Journey, data: Data, mover: Links, files: LinkedFiles, entry: str) -> EntryState:
    """Have the system fetch the data, and wait until it is done; raise NoWay if it can't."""
    if not all(link.url.startswith(("http:", "https:")) for link in files.links):
        raise NoWay("it is on this machine" if files.links[0].url.startswith("file:") else "")
    start = partial(_start, journey, data, mover.policy, files, entry)
    publish = partial(publish_entry, journey.cache, entry, data, files)
    return await fetch_on_system(journey, data, files.links[0].host, entry, start, publish)


async def _start(journey: Journey, data: Data, policy: Policy, files: LinkedFiles, entry: str) -> None:
    """Start fetching with Sublet's Python program, or with the system's curl if it has no usable Python."""
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
    """Stream the data through this service to the cache, unless another session does so already."""
    cache = journey.cache
    words = f"bringing {data.name}" if cache.is_here else f"streaming {data.name} to {journey.platform}"
    progress = journey.tell(words)

    async def stream(sizes: Mapping[str, int]) -> None:
        await stream_files(cache, entry, data, mover, files, sizes, progress)
        await publish_entry(cache, entry, data, files)

    return await bring_alone(cache, entry, progress, stream)
