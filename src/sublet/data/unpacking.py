"""Unpacks archives that were brought here or are in a system's cache, completely or not at all."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from uuid import uuid4

from sublet.booking.model.request import Data
from sublet.data.journeys import Journey, bring_alone, publish_entry
from sublet.data.model.links import LinkedFiles
from sublet.data.model.roads import Road, TakenRoad
from sublet.kernel.errors import DiskFull, PlatformRefused
from sublet.movers.arrival import missing
from sublet.platforms.batch.far.unpacker import UnpackRefused, unpack
from sublet.platforms.caching import EntryPhase, NoWay, UnpacksArchives

UNPACKED = LinkedFiles([], is_folder=True)


def unpack_brought(data: Data, folder: Path) -> None:
    """Replace the only archive of a folder by its content; raise DataNotThere if that fails or isn't allowed."""
    files = [file for file in folder.iterdir() if file.is_file()]
    if len(files) != 1 or len(list(folder.iterdir())) != 1:
        raise missing(data, "it is not one archive that could be unpacked")
    archive, part = files[0], folder.with_name(f"{folder.name}.{uuid4().hex[:8]}.part")
    try:
        unpack(archive, part)
        shutil.rmtree(folder)
        part.rename(folder)
    except UnpackRefused as refused:
        raise missing(data, str(refused)) from refused
    finally:
        shutil.rmtree(part, ignore_errors=True)


async def have_unpacked(
    journey: Journey, data: Data, entry: str, source: str, have: Callable[[], Awaitable[TakenRoad]]
) -> tuple[str, TakenRoad]:
    """Bring an archive's content into the cache as an entry of its own; raise NoWay if the system can't unpack it."""
    cache, name = journey.cache, f"unpacked-{hashlib.sha256(entry.encode()).hexdigest()}"
    if not isinstance(cache, UnpacksArchives):
        raise NoWay("what is kept there is not unpacked there")
    began = time.monotonic()
    state = await cache.want(name, journey.session, f"{data.name} from {source}")
    if state.phase is EntryPhase.THERE:
        return name, TakenRoad(data.name, Road.CACHED, source, state.done, time.monotonic() - began)
    taken = await have()

    async def spread(sizes: Mapping[str, int]) -> None:
        try:
            await cache.unpack_archive(entry, name)
        except DiskFull:
            raise
        except PlatformRefused as error:
            raise missing(data, error.message) from error
        await publish_entry(cache, name, data, UNPACKED)

    await bring_alone(cache, name, journey.tell(f"{journey.platform} is unpacking {data.name}"), spread)
    return name, taken
