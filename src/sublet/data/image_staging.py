"""Stages container images before a session starts: cached on its system, fetched there, or built there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data, Executable
from sublet.data.bringing import StagingContext, bring_here, tell_progress
from sublet.data.executables import ExecutableKinds
from sublet.data.journeys import Journey
from sublet.data.model.roads import Road, TakenRoad
from sublet.data.model.throughput import Hop, TransferTimes
from sublet.data.recording import record_times
from sublet.data.roads import Arrival, take_road
from sublet.data.sources import source_of
from sublet.kernel.errors import DataNotThere, SubletError
from sublet.kernel.log import log
from sublet.kernel.value_names import directory_name
from sublet.kinds.app import APP
from sublet.kinds.images import ArchiveFile
from sublet.movers.port import AnyMover, Links, Pins, SignsIn
from sublet.platforms.caching import CachesData, DataCache, ExpectsImages, FetchesImages, SendsArchives, UnpacksFiles
from sublet.platforms.port import Platform

FETCHED = "image.sif"
KEPT_AS_FILES = ("apptainer", "singularity")  # tools that keep images as files, not in a store of their own
ONLY_DIRECTORIES = "charliecloud"  # a tool that only runs images unpacked to directories
PROGRAMS_FOR_UNPACKED = {
    "charliecloud": "ch-run",
    "podman": "podman",
}  # the program of each tool that runs unpacked images
NO_TIME = 0.5  # seconds: a faster "build" means that the image existed already


def list_fetched(kinds: ExecutableKinds, executable: Executable | None, way: str) -> Sequence[Data]:
    """List the registry images that an executable can use with this way; any one of them is enough."""
    kind = kinds.by_name.get(executable.kind) if executable else None
    return kind.fetches_for(executable, way) if kind and executable else ()


class ImageStaging:
    """Stages the container images of one session on its platform."""

    def __init__(
        self, context: StagingContext, platform: Platform, way: str, place: Path, session: str, person: str = ""
    ) -> None:
        """Remember the session, its platform and way; nothing is staged yet."""
        self._context, self._platform, self._way = context, platform, way
        self._place, self._session, self._person = place, session, person
        self.roads: list[TakenRoad] = []  # the roads of registry images that took one

    async def stage(
        self,
        executable: Executable | None,
        wanted: Sequence[Data],
        journey: Journey | None,
        arrivals: Sequence[Arrival],
        *,
        guest: bool,
    ) -> dict[str, str]:
        """Stage all images; return the session's files that its platform keeps elsewhere, and their paths there."""
        kept = await self.fetch(executable, journey, guest=guest)
        arrived = {arrival.data.name: arrival for arrival in arrivals}
        for data in [each for each in wanted if each.shared]:
            if journey and data.name in arrived:
                kept |= await self.use_kept(journey.cache, arrived[data.name])
            else:
                kept |= await self.keep(data)
        return kept | await self.make(executable)

    async def keep(self, data: Data) -> dict[str, str]:
        """Have the platform keep files that were brought here; return the paths of those that it keeps elsewhere.

        An image archive is also turned into what the way runs, before the session starts.
        """
        kept: dict[str, str] = {}
        folder = self._place / "data" / directory_name(data.name)
        for file in sorted(file for file in folder.iterdir() if file.is_file()):
            progress = tell_progress(self._context, self._session, f"sending {file.name} to {self._platform.name}")
            path = await self._platform.keep(file, user=self._session, progress=progress)
            await self._make(path, file.name, ArchiveFile(str(file)))
            if path != str(file):
                kept[str(file.relative_to(self._place))] = path
                file.unlink()
                log.info("data.kept", session=self._session, data=data.name, platform=self._platform.name, path=path)
        return kept

    async def use_kept(self, cache: DataCache, arrival: Arrival) -> dict[str, str]:
        """Give the session a file from its system's cache; return its path there if the system is remote."""
        name = arrival.files.links[0].path
        content = cache.find_content(arrival.entry)
        path = Path("data", directory_name(arrival.data.name), name)
        if not cache.is_here:
            await self._make(content, name, None)
            return {str(path): content}
        await asyncio.to_thread(_point, self._place / path, content)
        await self._make(content, name, ArchiveFile(content))
        return {}

    async def make(self, executable: Executable | None) -> dict[str, str]:
        """Build images from archives that are on the platform already.

        Return the paths there if the platform is remote.
        """
        kind = self._context.kinds.by_name.get(executable.kind) if executable else None
        made: dict[str, str] = {}
        for path in kind.archives(executable) if kind and executable else ():
            name = os.path.basename(path)
            if self._platform.is_here:
                await self._make(path, name, ArchiveFile(path))
            elif isinstance(self._platform, UnpacksFiles):
                self._context.loop_state.staging[self._session] = f"{self._platform.name} is unpacking {name}"
                made |= await self._platform.unpack_file(path, self._way, self._session)
        return made

    async def _make(self, path: str, name: str, archive: ArchiveFile | None) -> None:
        self._context.loop_state.staging[self._session] = f"{self._platform.name} is making the image of {name}"
        began = monotonic()
        is_made = await self._platform.make_image(path, self._way, archive, self._session)
        if is_made and archive and (seconds := monotonic() - began) > NO_TIME:
            made = TransferTimes()
            made.note("", await asyncio.to_thread(os.path.getsize, archive.path), seconds)
            await record_times(self._context, self._platform.name, made, Hop.MADE)

    async def fetch(self, executable: Executable | None, journey: Journey | None, *, guest: bool) -> dict[str, str]:
        """Stage the first available of the executable's registry images, where sessions can't fetch it themselves."""
        failures: list[DataNotThere] = []
        is_reviewed = executable is not None and executable.kind == APP.name
        for data in list_fetched(self._context.kinds, executable, self._way):
            mover = self._context.movers.choose(data, guest=guest, reviewed=is_reviewed)
            signs_in = isinstance(mover, SignsIn) and mover.signs_in(data)
            if self._platform.fetches and not signs_in:
                if not await self._unpack(data, mover):
                    await self._fetch_before(data, mover)
                return {}
            try:
                return await self._fetch(data, mover, journey, pulls=not signs_in, guest=guest)
            except DataNotThere as error:
                failures.append(error)
        if failures:
            raise failures[0]
        return {}

    async def _unpack(self, data: Data, mover: AnyMover | Reason) -> bool:
        """Fetch the image here and unpack it, for a tool that runs directories.

        If that fails, the tool fetches it itself.
        """
        if self._way == ONLY_DIRECTORIES and isinstance(self._platform, FetchesImages):
            with suppress(DataNotThere):
                await self._fetch(data, mover, None, pulls=False)
                return True
        return False

    async def _find_unpacked(self, data: Data) -> bool:
        """Give the session an image that was unpacked earlier; return whether there was one."""
        if self._way != ONLY_DIRECTORIES or not isinstance(self._platform, FetchesImages):
            return False
        folder = self._place / "data" / directory_name(data.name)
        if not await self._platform.fetch_image(data.location, self._way, folder / FETCHED, self._session):
            return False
        await asyncio.to_thread(_leave_alone, folder, FETCHED)
        return True

    async def _fetch_before(self, data: Data, mover: AnyMover | Reason) -> None:
        """Fetch an image before the session starts, on a platform whose sessions could also fetch it themselves."""
        if not isinstance(self._platform, FetchesImages):
            return
        if isinstance(mover, Pins) and self._way in KEPT_AS_FILES:
            with suppress(DataNotThere):  # a pinned image is kept for all sessions, any other for this session only
                data = await mover.pin(data)
        self._tell(data)
        began = monotonic()
        target = self._place / "data" / directory_name(data.name) / FETCHED
        if await self._platform.fetch_image(data.location, self._way, target, self._session):
            await self._note_fetched(data, began)

    async def _fetch(
        self, data: Data, mover: AnyMover | Reason, journey: Journey | None, *, pulls: bool, guest: bool = False
    ) -> dict[str, str]:
        """Stage an image: pulled by the platform if possible, or else streamed to its cache, or sent from here."""
        if isinstance(mover, Pins):
            data = await mover.pin(data)
        self._tell(data)
        if await self._find_unpacked(data):
            return {}
        began = monotonic()
        path = await self._platform.pull(data.location, self._way, self._session) if pulls else None
        folder = Path("data", directory_name(data.name))
        if path:
            await self._note_fetched(data, began)
            log.info(
                "image.pulled",
                session=self._session,
                location=data.location,
                platform=self._platform.name,
                path=path,
            )
            return {str(folder / FETCHED): path}
        if journey and not journey.cache.is_here and isinstance(mover, Links):
            return await self._take_road(journey, data, mover)
        if isinstance(mover, Links) and not guest and (expected := await self._stream_to_systems(data, mover)):
            return expected
        if isinstance(mover, Links) and await self._link_archive(data, mover):
            return await self.keep(data)
        brought = TransferTimes()
        bring = partial(bring_here, self._context, self._context.movers, mover, data, self._place / folder)
        await bring(self._session, brought)
        await record_times(self._context, self._platform.name, brought, Hop.HERE)
        kept = await self.keep(data)
        await self._find_unpacked(data)
        return kept

    async def _take_road(self, journey: Journey, data: Data, mover: Links) -> dict[str, str]:
        """Bring the image's archive into the system's cache, without using this machine's disk."""
        arrival = await take_road(journey, data, mover)
        if arrival is None:
            return {}
        self.roads.append(arrival.taken)
        return await self.use_kept(journey.cache, arrival)

    async def _stream_to_systems(self, data: Data, mover: Links) -> dict[str, str]:
        """Stream the image's archive to the caches of the systems that the nodes are on.

        Return nothing if one of the systems can't take it: the archive is then kept here and travels with the session.
        """
        if not isinstance(self._platform, ExpectsImages):
            return {}
        systems = await self._context.systems.find_systems(self._platform.name)
        try:
            arrivals = [await self._stream_to(system, user, data, mover) for system, user in systems]
        except DataNotThere:
            raise
        except SubletError as error:
            log.info("image.not-streamed", session=self._session, location=data.location, why=error.message)
            return {}
        if not arrivals or None in arrivals:
            return {}
        self.roads += [arrival.taken for arrival in arrivals if arrival and arrival.taken.road is not Road.CACHED]
        [(entry, name), *_] = [(arrival.entry, arrival.files.links[0].path) for arrival in arrivals if arrival]
        path = await self._platform.expect_image(data.location, entry, self._session)
        return {str(Path("data", directory_name(data.name), name)): path}

    async def _stream_to(self, system: Platform, user: str, data: Data, mover: Links) -> Arrival | None:
        """Bring an image into one system's cache and build it there; return None if the system has no cache."""
        if not isinstance(system, CachesData):
            return None
        tell = partial(tell_progress, self._context, self._session)
        cache = await system.open_cache()
        arrival = await take_road(Journey(cache, system.name, user, self._person, tell), data, mover)
        if arrival:
            self._context.loop_state.staging[self._session] = f"{system.name} is making the image of {data.location}"
            await system.make_image(cache.find_content(arrival.entry), self._way, None, user)
        return arrival

    async def _link_archive(self, data: Data, mover: Links) -> bool:
        """Keep the image's archive once on this machine, linked into the session's directory.

        Return whether that worked.
        """
        if not isinstance(self._platform, SendsArchives):
            return False
        cache = await self._platform.open_archives()
        tell = partial(tell_progress, self._context, self._session)
        journey = Journey(cache, self._platform.name, self._session, self._person, tell)
        arrival = await take_road(journey, data, mover)
        if arrival is None:
            return False
        file = self._place / "data" / directory_name(data.name) / arrival.files.links[0].path
        await asyncio.to_thread(_link, file, cache.find_content(arrival.entry))
        await cache.leave(self._session)  # the session's own hard link keeps the file
        if arrival.taken.road is not Road.CACHED:
            self.roads.append(arrival.taken)
        return True

    def _tell(self, data: Data) -> None:
        self._context.loop_state.staging[self._session] = f"{self._platform.name} is fetching {data.location}"

    async def _note_fetched(self, data: Data, began: float) -> None:
        fetched = TransferTimes()
        fetched.note(source_of(data), 0, monotonic() - began)
        await record_times(self._context, self._platform.name, fetched, Hop.THERE)


def _leave_alone(folder: Path, name: str) -> None:
    """Remove every file of a folder except one."""
    for file in folder.iterdir():
        if file.name != name:
            file.unlink()


def _link(file: Path, content: str) -> None:
    """Make a hard link, replacing one that an earlier attempt made."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    file.hardlink_to(content)


def _point(link: Path, target: str) -> None:
    """Make a symbolic link, replacing one that an earlier attempt made."""
    link.parent.mkdir(parents=True, exist_ok=True)
    aside = link.with_name(f".{link.name[:100]}.new")
    aside.unlink(missing_ok=True)
    aside.symlink_to(target)
    aside.replace(link)
