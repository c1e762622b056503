"""Results of one session as data of another: `session:NAME/PATH`. It waits for that session, of the same person."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

from sublet.booking.model.offer import Reason
from sublet.booking.model.phases import Phase
from sublet.booking.model.request import Data, Request, SentResults
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.errors import NotFound, PlatformRefused, SubletError
from sublet.kernel.part_names import name_part
from sublet.kernel.path_texts import restore_path
from sublet.kernel.streams import closing
from sublet.movers.arrival import check_checksum, guess, missing, refuse
from sublet.movers.port import SIMPLE, LeftFiles, Progress
from sublet.movers.trees import safe_path
from sublet.platforms.port import Platform, ResultFile
from sublet.store.store import Store

SCHEME = "session"
EXAMPLE = "session:3f2a91c0/out/"
SPEED = 100_000_000  # bytes per second, for an estimate
MOMENT = 2.0  # seconds to wait for a size while someone asks for offers
ALL = "*"


def split_source(location: str) -> tuple[str, str]:
    """Return the session that an address names and the path of its results; empty for an address of another kind."""
    scheme, _, rest = location.partition(":")
    name, _, path = rest.partition("/") if scheme == SCHEME else ("", "", "")
    return name, path


def name_sources(request: Request) -> Request:
    """Return the request so that it waits for the sessions whose results it needs."""
    names = [name for data in request.data if (name := split_source(data.location)[0])]
    return replace(request, after=tuple(dict.fromkeys((*request.after, *names)))) if names else request


def pin_sources(request: Request, ids: Mapping[str, str]) -> Request:
    """Return the request with the whole ids of the sessions whose results it needs."""
    return replace(request, data=tuple(_pin(data, ids) for data in request.data))


def _pin(data: Data, ids: Mapping[str, str]) -> Data:
    name, path = split_source(data.location)
    return replace(data, location=f"{SCHEME}:{ids[name]}/{path}") if name in ids else data


@dataclass
class SessionResultsMover:
    """The mover of sessions' results; that they are the person's own was checked when they asked."""

    store: Store
    platforms: KnownPlatforms
    name: str = "session"
    schemes: Sequence[str] = (SCHEME,)
    kinds: Sequence[str] = (SIMPLE,)

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the address or checksum."""
        reasons = check_checksum(data)
        if not split_source(data.location)[0]:
            reasons.append(refuse(data, "It names no session.", nearest=EXAMPLE))
        return reasons

    async def measure(self, data: Data) -> int | None:
        """Return the size of the results that are there already, or None."""
        with suppress(SubletError, TimeoutError):
            async with asyncio.timeout(MOMENT):
                _, files, _ = await self._find(data)
                return sum(file.size for file, _ in files)
        return None

    def estimate(self, data: Data) -> timedelta:
        """Estimate how long the transfer takes."""
        return guess(data, SPEED)

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Copy the results from where they are; files that an earlier try has copied are not copied again."""
        try:
            platform, files, folders = await self._find(data)
            for folder in folders:
                await asyncio.to_thread((target / folder).mkdir, parents=True, exist_ok=True)
            total, done = sum(file.size for file, _ in files), 0
            for file, place in files:
                path = target / restore_path(str(safe_path(data, place)))
                if not (path.is_file() and path.stat().st_size == file.size):
                    await self._copy(data, platform, file, path)
                done += file.size
                progress(done, total)
        except (NotFound, PlatformRefused) as error:
            raise missing(data, error.message) from error

    async def find_left(self, data: Data) -> LeftFiles:
        """Return where the results are, so that a session on the same system needs no transfer through the service."""
        try:
            platform, files, folders = await self._find(data)
        except (NotFound, PlatformRefused) as error:
            raise missing(data, error.message) from error
        id, path = split_source(data.location)
        is_folder = bool(folders) or len(files) > 1 or files[0][0].path != path.strip("/")
        pairs = [(file.path, str(safe_path(data, place))) for file, place in files] + [("", path) for path in folders]
        return LeftFiles(platform.name, id, pairs, sum(file.size for file, _ in files), is_folder)

    async def _find(self, data: Data) -> tuple[Platform, list[tuple[ResultFile, str]], list[str]]:
        """Return the platform, each file with its path below the data's directory, and the paths of empty folders."""
        id, path = split_source(data.location)
        session = await self.store.read(lambda tx: tx.sessions.get(id))
        if session is None:
            raise missing(data, "that session is not here any more")
        if session.phase is not Phase.COMPLETED:
            raise missing(data, f"that session is {session.phase}")
        platform = self.platforms.get(session.offer.platform)
        chosen = SentResults(path or ALL, "")
        results = await platform.results(id)
        files = [(file, place) for file in results.files if (place := chosen.place(file.path))]
        folders = [place for folder in results.folders if (place := _place_folder(data, chosen, folder))]
        if not files and not folders:
            raise missing(data, "that session left no such file, or its results were removed")
        return platform, files, folders

    async def _copy(self, data: Data, platform: Platform, file: ResultFile, path: Path) -> None:
        id, _ = split_source(data.location)
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
        part = path.with_name(name_part(path.name))
        with part.open("wb") as writer:
            async with closing(platform.read(id, file.path)) as pieces:
                async for piece in pieces:
                    await asyncio.to_thread(writer.write, piece)
        if part.stat().st_size != file.size:
            part.unlink()
            raise missing(data, f"{file.path} changed as it was read")
        part.replace(path)


def _place_folder(data: Data, chosen: SentResults, folder: str) -> str:
    """Return where an empty folder goes: `.` is the data's own directory; empty if it isn't one of these."""
    if folder == chosen.path.strip("/"):
        return "."
    place = chosen.place(folder)
    return str(safe_path(data, place)) if place else ""
