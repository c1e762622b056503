"""Stages a session's data and images, and lays them out where the executable will see them."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import monotonic

from sublet.booking.model.job import Mount
from sublet.booking.model.request import Data, Request
from sublet.data.bringing import StagingContext, bring_here, tell_progress
from sublet.data.executables import Movers
from sublet.data.image_staging import ImageStaging, list_fetched
from sublet.data.journeys import Journey
from sublet.data.layout import ends_like, is_file_address, lay_out, list_laid_out, note_brought
from sublet.data.model.roads import Road, TakenRoad
from sublet.data.model.throughput import Hop, Meter, TransferTimes
from sublet.data.placing import find_file_there, place_all, record_files, travel
from sublet.data.recording import STAGED, record_roads, record_times
from sublet.data.roads import Arrival
from sublet.data.sources import source_of
from sublet.data.tasks import stop_transfers
from sublet.kernel.errors import DataNotThere, PlatformRefused, SubletError
from sublet.kernel.value_names import directory_name
from sublet.platforms.caching import CachesData
from sublet.platforms.port import Platform

KEPT = "kept.json"  # which of a session's files the platform's cache keeps, and where


def mounts_of(request: Request, place: Path | None) -> tuple[Mount, ...]:
    """List where the executable sees each data or storage resource: at its volumes, or at `data/NAME` without one.

    Data laid out in the working directory needs no mount.
    """
    data = {item.name: item for item in request.data}
    mounts = []
    laid = {volume for _, volume in list_laid_out(request)}
    for volume in request.compute.volumes:
        if volume in laid:
            continue
        family = "data" if volume.resource in data else "storage"
        source = f"{family}/{directory_name(volume.resource)}"
        source = _file_or_all(source, volume.path, place, data.get(volume.resource))
        mounts.append(Mount(source, volume.path, volume.read_only))
    seen = {volume.resource for volume in request.compute.volumes}
    mounts += [
        Mount(f"data/{directory_name(item.name)}", f"data/{directory_name(item.name)}")
        for item in request.data
        if item.name not in seen
    ]
    return tuple(mounts)


def _file_or_all(source: str, target: str, place: Path | None, data: Data | None) -> str:
    """Return the single file instead of its directory, if the target path names that file."""
    name = _find_only_file(place, source) if place else ""
    if name and (name == os.path.basename(target) or (data and is_file_address(data) and ends_like(target, name))):
        return f"{source}/{name}"
    return source


def _find_only_file(place: Path, source: str) -> str:
    """Return the name of the only file in a directory of data, here or on the system; empty if it isn't just one."""
    if name := find_file_there(place, source):
        return name
    names = os.listdir(place / source) if (place / source).is_dir() else []
    return names[0] if len(names) == 1 and (place / source / names[0]).is_file() else ""


async def stage(
    context: StagingContext,
    request: Request,
    platform: Platform,
    way: str,
    place: Path,
    session: str,
    *,
    guest: bool = False,
    person: str = "",
) -> list[TakenRoad]:
    """Stage all data in parallel, once; raise DataNotThere for the first item that can't be brought."""
    if (place / STAGED).exists():
        return []
    movers = context.movers
    journey = None
    has_data = bool(context.kinds.inputs_of(request.executable, request.data))
    if has_data and not guest:
        movers = movers.with_credentials(await context.credentials.open(person))
    if (has_data or list_fetched(context.kinds, request.executable, way)) and not guest:
        journey = await _begin_journey(context, platform, session, person)
    began = monotonic()
    try:
        taken = await _stage(
            context, movers, request, platform, way, place, session, journey=journey, guest=guest, person=person
        )
        await asyncio.to_thread(_write, place / STAGED, f"{monotonic() - began:.6f}")
        return taken
    except (DataNotThere, PlatformRefused):
        await leave_cache(context, platform, session, person)
        raise
    finally:
        context.loop_state.staging.pop(session, None)


async def _begin_journey(context: StagingContext, platform: Platform, session: str, person: str) -> Journey | None:
    """Return a journey to the platform's cache, or None if it has no cache."""
    if not isinstance(platform, CachesData):
        return None
    tell = partial(tell_progress, context, session)
    return Journey(await platform.open_cache(), platform.name, session, person, tell)


async def leave_cache(context: StagingContext, platform: Platform, session: str, person: str) -> None:
    """Release a session's cache entries when it ends before submission, and stop transfers made only for it."""
    if isinstance(platform, CachesData):
        with suppress(SubletError):
            notes = await (await platform.open_cache()).leave(session)
            credentials = await context.credentials.open(person) if notes else ()
            await stop_transfers(context.movers.with_credentials(credentials), notes)


async def _stage(
    context: StagingContext,
    movers: Movers,
    request: Request,
    platform: Platform,
    way: str,
    place: Path,
    session: str,
    *,
    journey: Journey | None,
    guest: bool = False,
    person: str = "",
) -> list[TakenRoad]:
    for storage in request.storage:
        (place / "storage" / directory_name(storage.name)).mkdir(parents=True, exist_ok=True)
    wanted = context.kinds.inputs_of(request.executable, request.data)
    arrivals: list[Arrival] = []
    detours: list[TakenRoad] = []  # data that could not take its best road, and why
    brought = TransferTimes()

    async def bring(data: Data) -> None:
        mover, target = movers.choose(data, guest=guest), place / "data" / directory_name(data.name)
        if journey and (arrival := await travel(journey, request, data, mover, movers)):
            arrivals.append(arrival)
            return
        began = monotonic()
        size = await bring_here(context, movers, mover, data, target, session, brought, guest=guest)
        if journey and (why := _explain_detour(journey, data)):
            detours.append(TakenRoad(data.name, Road.HERE, source_of(data), size, monotonic() - began, why))

    try:
        async with asyncio.TaskGroup() as group:
            for data in wanted:
                group.create_task(bring(data))
    except ExceptionGroup as several:
        raise several.exceptions[0] from several
    await record_times(context, platform.name, brought, Hop.HERE)
    await record_roads(context, platform.name, [arrival.taken for arrival in arrivals])
    images = ImageStaging(context, platform, way, place, session, person)
    kept = await images.stage(request.executable, wanted, journey, arrivals, guest=guest)
    await record_roads(context, platform.name, images.roads)
    await asyncio.to_thread(lay_out, request, place, [arrival.data.name for arrival in arrivals])
    if journey and arrivals:
        context.loop_state.staging[session] = f"laying out its data on {platform.name}"
        await place_all(journey.cache, session, request, [each for each in arrivals if not each.data.shared])
        if journey.cache.is_here and list_laid_out(request):
            await asyncio.to_thread(note_brought, place)
        await asyncio.to_thread(record_files, place, arrivals)
    await asyncio.to_thread(_write, place / KEPT, json.dumps(kept))
    return [*(arrival.taken for arrival in arrivals), *detours, *images.roads]


def _explain_detour(journey: Journey, data: Data) -> str:
    """Return why data from another host was brought here first; empty if that is where it is needed."""
    is_usual = journey.cache.is_here or not source_of(data)
    return journey.no_ways.get(data.name) or ("" if is_usual else f"{journey.platform} can't fetch it by itself")


def find_kept_files(place: Path) -> dict[str, str]:
    """Return the session's files that the platform's cache keeps, with their paths there."""
    try:
        kept: dict[str, str] = json.loads((place / KEPT).read_text())
    except FileNotFoundError:
        return {}
    return kept


def _write(file: Path, text: str) -> None:
    part = file.with_name(f"{file.name}.part")
    part.write_text(text)
    part.replace(file)


async def carry(context: StagingContext, platform: Platform, session: str) -> timedelta:
    """Send staged files to where the session will run, with progress, and return how long that took."""
    meter, began = Meter(tell_progress(context, session, f"sending files to {platform.name}")), monotonic()
    try:
        await platform.carry(session, meter)
    finally:
        context.loop_state.staging.pop(session, None)
    sent, seconds = TransferTimes(), monotonic() - began
    sent.note("", meter.bytes, seconds)
    await record_times(context, platform.name, sent, Hop.SENT)
    return timedelta(seconds=seconds)
