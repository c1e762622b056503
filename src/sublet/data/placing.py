"""Where cached data appears in a session's directory: linked if it is only read, copied if it is writable."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data, Request
from sublet.data.executables import Movers
from sublet.data.journeys import Journey
from sublet.data.kept_roads import take_kept_road
from sublet.data.layout import is_path_of_file, list_laid_out
from sublet.data.named_links import NamedLinks
from sublet.data.roads import Arrival, take_left, take_own, take_road
from sublet.data.tool_roads import take_tool_road
from sublet.kernel.errors import DataNotThere, PlatformRefused
from sublet.kernel.log import log
from sublet.kernel.value_names import directory_name
from sublet.movers.arrival import missing
from sublet.movers.port import AnyMover, FindsLeft, KnowsContent, LiesOnSystems, Links, NoLinks, PlansTool, Resolves
from sublet.platforms.caching import CachePlacement, DataCache, NoWay

RECORD = "roads.json"  # in a session's directory here: which of its data is a single file on the system, and its name


def can_travel(request: Request, data: Data) -> bool:
    """Whether data may take a road of its own: nothing else is laid out in the same folder.

    A shared file of this machine is sent by its content instead.
    """
    if is_shared_here(data):
        return False
    paths = [(item.name, PurePosixPath(volume.path)) for item, volume in list_laid_out(request)]
    own = [path for name, path in paths if name == data.name]
    others = [path for name, path in paths if name != data.name]
    return not any(path == other or path in other.parents or other in path.parents for path in own for other in others)


def is_shared_here(data: Data) -> bool:
    """Whether the data is a file of this machine that many sessions share."""
    return data.shared and urlsplit(data.location).scheme in ("", "file")


async def travel(
    journey: Journey, request: Request, data: Data, mover: AnyMover | Reason, movers: Movers
) -> Arrival | None:
    """Take data to the system by a road of its own; return None if there is none, so that it is brought here first."""
    if not can_travel(request, data):
        return None
    try:
        if isinstance(mover, Resolves):
            return await _travel_by_name(journey, data, NamedLinks(movers, mover))
        if isinstance(mover, LiesOnSystems) and (arrival := await take_own(journey, data, mover)):
            return arrival
        if isinstance(mover, KnowsContent) and journey.cache.is_here:
            return await take_kept_road(journey, data, mover)
        if isinstance(mover, PlansTool):
            return await take_tool_road(journey, data, mover)
        if isinstance(mover, Links):
            return await take_road(journey, data, mover)
    except (NoWay, NoLinks):
        return None  # it can't be unpacked there, or can't be streamed
    if data.unpack:
        return None
    return await take_left(journey, data, mover) if isinstance(mover, FindsLeft) else None


async def _travel_by_name(journey: Journey, data: Data, named: NamedLinks) -> Arrival | None:
    """Take data by its name; return None if that fails, as bringing it here tries and reports every address."""
    try:
        return await take_road(journey, data, named)
    except DataNotThere as error:
        log.info("data.no-way", session=journey.session, data=data.name, platform=journey.platform, why=error.message)
        return None


def list_placements(request: Request, arrivals: Sequence[Arrival]) -> list[CachePlacement]:
    """List where the arrived data appears below the session's directory."""
    return [placement for arrival in arrivals for placement in _place(request, arrival)]


def _place(request: Request, arrival: Arrival) -> list[CachePlacement]:
    laid_out = [volume for item, volume in list_laid_out(request) if item.name == arrival.data.name]
    if laid_out:
        return [CachePlacement(arrival.entry, _find_work_path(arrival, volume.path), True) for volume in laid_out]
    volumes = [volume for volume in request.compute.volumes if volume.resource == arrival.data.name]
    is_writable = any(not volume.read_only for volume in volumes)
    folder = f"data/{directory_name(arrival.data.name)}"
    target = folder if arrival.files.is_folder else f"{folder}/{arrival.files.links[0].path}"
    return [CachePlacement(arrival.entry, target, is_writable)]


def _find_work_path(arrival: Arrival, path: str) -> str:
    """Return a path below the working directory: the file's own, or in the folder that the path names."""
    target = PurePosixPath("work", path)
    if arrival.files.is_folder:
        return str(target)
    name = arrival.files.links[0].path
    return str(target if is_path_of_file(path, name, arrival.data.location) else target / name)


async def place_all(cache: DataCache, session: str, request: Request, arrivals: Sequence[Arrival]) -> None:
    """Put all arrived data where the session will see it."""
    for arrival in arrivals:
        for placement in _place(request, arrival) if arrival.left else ():
            await _take(cache, session, arrival, placement)
    await cache.place(session, list_placements(request, [arrival for arrival in arrivals if not arrival.left]))


async def _take(cache: DataCache, session: str, arrival: Arrival, placement: CachePlacement) -> None:
    """Take files that another session left; a single file is named as the placement says, several keep their paths."""
    if arrival.left is None:
        return
    files = arrival.left.files
    if not arrival.files.is_folder:
        folder, _, name = placement.target.rpartition("/")
        files, placement = [(files[0][0], name)], replace(placement, target=folder)
    try:
        await cache.take(session, arrival.left.session, files, placement)
    except PlatformRefused as error:
        raise missing(arrival.data, error.message) from error


def record_files(place: Path, arrivals: Sequence[Arrival]) -> None:
    """Record which data is a single file on the system."""
    names = {
        f"data/{directory_name(arrival.data.name)}": arrival.files.links[0].path
        for arrival in arrivals
        if not arrival.files.is_folder
    }
    (place / RECORD).write_text(json.dumps(names))


def find_file_there(place: Path, source: str) -> str:
    """Return the name of data's single file on the system; empty if it isn't one, or isn't there."""
    try:
        names: dict[str, str] = json.loads((place / RECORD).read_text())
    except FileNotFoundError:
        return ""
    return names.get(source, "")
