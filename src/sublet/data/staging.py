"""Bringing what a session needs, and laying it out where the executable will see it."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Protocol

from sublet.booking.model.job import Mount
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data, Executable, Request
from sublet.data.executables import ExecutableKinds, Movers
from sublet.data.journeys import Journey
from sublet.data.layout import lay_out, list_laid_out, note_brought
from sublet.data.model.credentials import Credential
from sublet.data.model.roads import TakenRoad
from sublet.data.model.throughput import Hop, Meter, TransferTimes
from sublet.data.placing import find_file_there, place_all, record_files, travel
from sublet.data.recording import STAGED, TransferLog, record_roads, record_times
from sublet.data.resolving import bring_files, find_files
from sublet.data.roads import Arrival
from sublet.data.sources import source_of
from sublet.data.tasks import stop_transfers
from sublet.data.unpacking import unpack_brought
from sublet.kernel.data_urls import shorten_location
from sublet.kernel.errors import DataNotThere, PlatformRefused, SubletError
from sublet.kernel.log import log
from sublet.kernel.value_names import directory_name
from sublet.kinds.app import APP
from sublet.kinds.images import describe_archive
from sublet.movers.arrival import without_secrets
from sublet.movers.port import AnyMover, Pins, Progress, Resolves, SignsIn
from sublet.platforms.caching import CachesData, FetchesImages
from sublet.platforms.port import Platform

KEPT = "kept.json"  # which of its files the platform keeps for many, and where
FETCHED = "image.sif"


class Bringing(Protocol):
    """Where it is told what is being brought."""

    @property
    def staging(self) -> dict[str, str]:
        """Of each session, what is being brought for it, and how far that is."""
        ...


class CredentialOpener(Protocol):
    """Knows people's credentials."""

    async def open(self, person: str) -> Sequence[Credential]:
        """A person's, each for one place."""
        ...


class StagingContext(Protocol):
    """What staging needs of the loop that it is a step of."""

    @property
    def kinds(self) -> ExecutableKinds:
        """The kinds that are installed."""
        ...

    @property
    def movers(self) -> Movers:
        """The movers that are installed."""
        ...

    @property
    def loop_state(self) -> Bringing:
        """What is shown of it."""
        ...

    @property
    def transfers(self) -> TransferLog:
        """Where it is written down how long transfers took."""
        ...

    @property
    def credentials(self) -> CredentialOpener:
        """What opens the storage that people's data is in."""
        ...


def mounts_of(request: Request, place: Path | None) -> tuple[Mount, ...]:
    """Where the executable sees each data or storage resource: its volumes, else `data/NAME` for data without one.

    What is laid out in the working directory needs none.
    """
    data = {item.name for item in request.data}
    mounts = []
    laid = {volume for _, volume in list_laid_out(request)}
    for volume in request.compute.volumes:
        if volume in laid:
            continue
        family = "data" if volume.resource in data else "storage"
        source = f"{family}/{directory_name(volume.resource)}"
        mounts.append(Mount(_file_or_all(source, volume.path, place), volume.path, volume.read_only))
    seen = {volume.resource for volume in request.compute.volumes}
    mounts += [
        Mount(f"data/{directory_name(item.name)}", f"data/{directory_name(item.name)}")
        for item in request.data
        if item.name not in seen
    ]
    return tuple(mounts)


def _file_or_all(source: str, target: str, place: Path | None) -> str:
    """Data that is one file, to be seen at a path that ends in its name, is that file, not the directory around it."""
    name = os.path.basename(target)
    if place and name and find_file_there(place, source) == name:
        return f"{source}/{name}"
    if place and name and (place / source / name).is_file() and os.listdir(place / source) == [name]:
        return f"{source}/{name}"
    return source


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
    """Bring all data, side by side; DataNotThere names the first that can't be had. Done once, it isn't done again."""
    if (place / STAGED).exists():
        return []
    movers = context.movers
    if request.data and not guest:
        movers = movers.with_credentials(await context.credentials.open(person))
    journey = await _begin_journey(context, platform, session, person) if request.data and not guest else None
    began = monotonic()
    try:
        taken = await _stage(context, movers, request, platform, way, place, session, journey=journey, guest=guest)
        await asyncio.to_thread(_write, place / STAGED, f"{monotonic() - began:.6f}")
        return taken
    except (DataNotThere, PlatformRefused):
        await leave_cache(context, platform, session, person)
        raise
    finally:
        context.loop_state.staging.pop(session, None)


async def _begin_journey(context: StagingContext, platform: Platform, session: str, person: str) -> Journey | None:
    """Where a platform has a cache of data, so that roads lead there."""
    if not isinstance(platform, CachesData):
        return None
    tell = partial(tell_progress, context, session)
    return Journey(await platform.open_cache(), platform.name, session, person, tell)


async def leave_cache(context: StagingContext, platform: Platform, session: str, person: str) -> None:
    """A session is over before it was submitted: what is fetched for it alone stops, if the system can be told."""
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
) -> list[TakenRoad]:
    for storage in request.storage:
        (place / "storage" / directory_name(storage.name)).mkdir(parents=True, exist_ok=True)
    wanted = context.kinds.inputs_of(request.executable, request.data)
    arrivals: list[Arrival] = []
    brought = TransferTimes()

    async def bring(data: Data) -> None:
        mover, target = movers.choose(data, guest=guest), place / "data" / directory_name(data.name)
        if journey and (arrival := await travel(journey, request, data, mover, movers)):
            arrivals.append(arrival)
        else:
            await _bring(context, movers, mover, data, target, session, brought, guest=guest)

    try:
        async with asyncio.TaskGroup() as group:
            for data in wanted:
                group.create_task(bring(data))
    except ExceptionGroup as several:
        raise several.exceptions[0] from several
    await record_times(context, platform.name, brought, Hop.HERE)
    await record_roads(context, platform.name, [arrival.taken for arrival in arrivals])
    kept = await _fetch_there(context, request.executable, platform, way, place, session, guest=guest)
    for data in wanted:
        if data.shared:
            kept |= await _keep(context, data, platform, way, place, session)
    await asyncio.to_thread(lay_out, request, place, [arrival.data.name for arrival in arrivals])
    if journey and arrivals:
        context.loop_state.staging[session] = f"laying out its data on {platform.name}"
        await place_all(journey.cache, session, request, arrivals)
        if journey.cache.is_here and list_laid_out(request):
            await asyncio.to_thread(note_brought, place)
        await asyncio.to_thread(record_files, place, arrivals)
    await asyncio.to_thread(_write, place / KEPT, json.dumps(kept))
    return [arrival.taken for arrival in arrivals]


async def _keep(
    context: StagingContext, data: Data, platform: Platform, way: str, place: Path, session: str
) -> dict[str, str]:
    """Have the platform keep what many share; a file that it keeps elsewhere is not in the session's own directory.

    An archive of an image is made into what runs there, in this way, before the session's own time begins.
    """
    found: dict[str, str] = {}
    folder = place / "data" / directory_name(data.name)
    for file in sorted(file for file in folder.iterdir() if file.is_file()):
        progress = tell_progress(context, session, f"sending {file.name} to {platform.name}")
        path = await platform.keep(file, user=session, progress=progress)
        if path != str(file):
            found[str(file.relative_to(place))] = path
            context.loop_state.staging[session] = f"{platform.name} is making the image of {file.name}"
            await platform.make_image(path, way, partial(describe_archive, str(file)))
            file.unlink()
            log.info("data.kept", session=session, data=data.name, platform=platform.name, path=path)
    return found


async def _fetch_there(
    context: StagingContext,
    executable: Executable | None,
    platform: Platform,
    way: str,
    place: Path,
    session: str,
    *,
    guest: bool,
) -> dict[str, str]:
    """Where sessions can't fetch what their kind fetches: have the first of it that can be had there, once for all."""
    kind = context.kinds.by_name.get(executable.kind) if executable else None
    failures: list[DataNotThere] = []
    if kind is None or executable is None:
        return {}
    for data in kind.fetches(executable):
        mover = context.movers.choose(data, guest=guest, reviewed=executable.kind == APP.name)
        signs_in = isinstance(mover, SignsIn) and mover.signs_in(data)
        if platform.fetches and not signs_in:
            await _fetch_before(context, data, platform, way, place, session)
            return {}
        try:
            return await _fetch(context, data, mover, platform, way, place, session, pulls=not signs_in)
        except DataNotThere as error:
            failures.append(error)
    if failures:
        raise failures[0]
    return {}


async def _fetch_before(
    context: StagingContext, data: Data, platform: Platform, way: str, place: Path, session: str
) -> None:
    """Where sessions fetch images by themselves: have it before one's own time begins, if that can be."""
    if not isinstance(platform, FetchesImages):
        return
    context.loop_state.staging[session] = f"{platform.name} is fetching {data.location}"
    began = monotonic()
    if await platform.fetch_image(data.location, way, place / "data" / directory_name(data.name) / FETCHED):
        fetched = TransferTimes()
        fetched.note(source_of(data), 0, monotonic() - began)
        await record_times(context, platform.name, fetched, Hop.THERE)


async def _fetch(
    context: StagingContext,
    data: Data,
    mover: AnyMover | Reason,
    platform: Platform,
    way: str,
    place: Path,
    session: str,
    *,
    pulls: bool,
) -> dict[str, str]:
    """Have it there: fetched by the platform, in this way, if it may; else sent from here."""
    if isinstance(mover, Pins):
        data = await mover.pin(data)
    context.loop_state.staging[session] = f"{platform.name} is fetching {data.location}"
    began = monotonic()
    path = await platform.pull(data.location, way, session) if pulls else None
    folder = Path("data", directory_name(data.name))
    if path:
        pulled = TransferTimes()
        pulled.note(source_of(data), 0, monotonic() - began)
        await record_times(context, platform.name, pulled, Hop.THERE)
        log.info("image.pulled", session=session, location=data.location, platform=platform.name, path=path)
        return {str(folder / FETCHED): path}
    brought = TransferTimes()
    await _bring(context, context.movers, mover, data, place / folder, session, brought)
    await record_times(context, platform.name, brought, Hop.HERE)
    return await _keep(context, data, platform, way, place, session)


def find_kept_files(place: Path) -> dict[str, str]:
    """The paths of a session's directory whose files the platform keeps, and where."""
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
    """Send what was brought to where it will run, and let those who look at the session see how far that is.

    Says how long that took.
    """
    meter, began = Meter(tell_progress(context, session, f"sending files to {platform.name}")), monotonic()
    try:
        await platform.carry(session, meter)
    finally:
        context.loop_state.staging.pop(session, None)
    sent, seconds = TransferTimes(), monotonic() - began
    sent.note("", meter.bytes, seconds)
    await record_times(context, platform.name, sent, Hop.SENT)
    return timedelta(seconds=seconds)


def tell_progress(context: StagingContext, session: str, what: str) -> Progress:
    """Let those who look at the session see how far it is."""

    def tell(done: int, total: int | None) -> None:
        of = f" of {total >> 20}" if total else ""
        context.loop_state.staging[session] = f"{what}: {done >> 20}{of} MiB"

    return tell


def _make_room(data: Data, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    need, free = data.size or 0, shutil.disk_usage(target).free
    if need > free:
        raise DataNotThere(name=data.name, location=data.location, why=f"it has {need} bytes and {free} are free here")


async def _bring(
    context: StagingContext,
    movers: Movers,
    mover: AnyMover | Reason,
    data: Data,
    target: Path,
    session: str,
    times: TransferTimes,
    *,
    guest: bool = False,
) -> None:
    if isinstance(mover, Reason):
        raise DataNotThere(name=data.name, location=data.location, why=mover.message)
    progress, began = Meter(tell_progress(context, session, f"bringing {data.name}")), monotonic()
    if isinstance(mover, Resolves):
        files = await find_files(movers, mover, data, guest=guest)
        sizes = [file.sources[0][1].size or 0 for file in files]
        await asyncio.to_thread(_make_room, replace(data, size=sum(sizes)), target)
        await bring_files(data, files, target, progress)
    else:
        await asyncio.to_thread(_make_room, data, target)
        await mover.bring(data, target, progress)
    times.note(source_of(data), progress.bytes, monotonic() - began)
    if data.unpack:
        context.loop_state.staging[session] = f"unpacking {data.name}"
        await asyncio.to_thread(unpack_brought, data, target)
    log.info("data.brought", session=session, data=data.name, location=without_secrets(shorten_location(data.location)))
