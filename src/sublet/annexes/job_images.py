"""Images that jobs name by a registry address: which image that is now, and its copy on the job's system.

The copy is the one that sessions there use, kept by the image's digest. The registry is asked repeatedly which image an
address means while a job that names it waits, since a tag may be moved.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.booking.model.session import Session
from sublet.data.bringing import CredentialOpener
from sublet.data.executables import Movers
from sublet.data.image_staging import KEPT_AS_FILES, PROGRAMS_FOR_UNPACKED
from sublet.data.journeys import Journey
from sublet.data.roads import take_road
from sublet.kernel.errors import DataNotThere, PlatformRefused, SubletError
from sublet.kernel.log import log
from sublet.kinds.images import ArchiveFile
from sublet.movers.port import SIMPLE, AnyMover, Links, Mover, Pins, Resolves, SignsIn
from sublet.platforms.batch.kept import name_pulled, read_name
from sublet.platforms.caching import CachesData
from sublet.platforms.port import ArchiveReader, Platform, quietly

EVERY = 15.0  # seconds between queries about one address
GOOD = 45.0  # seconds for which an answer counts if the registry gives no newer one
MOMENT = 20.0  # timeout of a query, in seconds
NAME = "image"


@dataclass
class _Address:
    """What is known about one address."""

    pinned: Data | None = None  # the image that it last meant
    asked: float = float("-inf")  # when the registry was last asked (monotonic clock)
    seen: float = float("-inf")  # when the last answered query was sent (monotonic clock)
    seen_at: float = 0.0  # the same, in seconds since the epoch
    moved_after: float = 0.0  # when it last still meant another image, in seconds since the epoch
    why: str = ""  # why the last query failed
    task: asyncio.Task[None] | None = None


@dataclass(frozen=True, slots=True)
class KeptImage:
    """An image on a system."""

    path: str
    digest: str  # the digest under which the system keeps it


@dataclass
class JobImages:
    """Asks registries about images, and has systems keep them."""

    home: Path  # where images that a system can't pull itself are assembled
    movers: Movers
    credentials: CredentialOpener

    _addresses: dict[str, _Address] = field(default_factory=dict)

    def find_digest(self, address: str, person: str, since: int) -> str | None:
        """Return the name under which an address's image is kept; empty if unknown, None while the registry is asked.

        An answer counts only if the registry was asked after `since`, in seconds since the epoch.
        """
        known = self._addresses.setdefault(address, _Address())
        now = time.monotonic()
        is_known = known.pinned is not None and int(known.seen_at) > since and now - known.seen <= GOOD
        is_due = now - known.asked >= EVERY or not (is_known or known.why)
        if known.task is None and is_due:
            known.asked = now
            known.task = asyncio.create_task(self._ask(address, person, known), name="job image")
        if is_known and known.pinned:
            return name_pulled(_digest(known.pinned))
        return "" if known.why else None

    def find_move(self, address: str) -> float:
        """Return when an address last still meant another image, in seconds since the epoch; 0 if it never changed."""
        return self._addresses[address].moved_after if address in self._addresses else 0.0

    def find_why(self, address: str) -> str:
        """Return why the image of an address isn't known, or an empty string."""
        return self._addresses[address].why if address in self._addresses else ""

    def forget_all_but(self, addresses: Collection[str]) -> None:
        """Forget the addresses that no job names any more."""
        for address in self._addresses.keys() - set(addresses):
            if self._addresses[address].task is None:
                del self._addresses[address]

    async def _ask(self, address: str, person: str, known: _Address) -> None:
        when, when_at = time.monotonic(), time.time()
        try:
            data, mover = await self._choose(address, person)
            if not isinstance(mover, Pins):
                raise DataNotThere(name=NAME, location=address, why="nothing here asks its registry")
            async with asyncio.timeout(MOMENT):
                pinned = await mover.pin(data)
            if known.pinned and _digest(known.pinned) != _digest(pinned):
                known.moved_after = known.seen_at
                log.info("job-image.moved", image=address, digest=_digest(pinned))
            known.pinned, known.seen, known.seen_at, known.why = pinned, when, when_at, ""
        except (SubletError, OSError, TimeoutError) as error:
            known.why = str(error) or "the registry did not answer in time"
            log.info("job-image.not-known", image=address, why=known.why)
        finally:
            known.task = None

    async def _choose(self, address: str, person: str) -> tuple[Data, AnyMover | Reason]:
        data = Data(NAME, SIMPLE, f"docker://{address.partition('://')[2]}")
        mover = self.movers.with_credentials(await self.credentials.open(person)).choose(data)
        return data, mover

    async def bring(self, platform: Platform, address: str, digest: str, session: Session) -> KeptImage:
        """Have a system pull an image and keep it for a lease; or send it from here, and have it converted there."""
        tools = [tool for tool in KEPT_AS_FILES if await platform.find_image_maker(tool)]
        if not tools:
            why = "its login host has no Apptainer, or it may not be used there"
            raise PlatformRefused(platform=platform.name, why=why)
        _, mover = await self._choose(address, session.person)
        pinned = self._addresses[address].pinned if address in self._addresses else None
        if pinned is None or name_pulled(_digest(pinned)) != digest:
            raise PlatformRefused(platform=platform.name, why=f"{address} means another image now")
        scheme = address.partition("://")[0]
        if not (isinstance(mover, SignsIn) and mover.signs_in(pinned)):
            location = f"{scheme}://{pinned.location.partition('://')[2]}"
            if path := await platform.pull(location, tools[0], session.id):
                return KeptImage(path, name_pulled(_digest(pinned)))
        if scheme != "docker" or isinstance(mover, Reason | Resolves):
            raise PlatformRefused(platform=platform.name, why=f"its login host could not pull {address}")
        kept = await self._stream(platform, pinned, mover, session)
        if kept and await platform.make_image(kept.path, tools[0], None, session.id):
            return KeptImage(f"{os.path.dirname(kept.path)}/image.sif", kept.digest)
        return await self._send(platform, pinned, mover, tools[0], session.id)

    async def stream(self, platform: Platform, address: str, digest: str, session: Session) -> KeptImage:
        """Get the archive of a session's image into a system's cache, and have it converted to what runs there."""
        _, mover = await self._choose(address, session.person)
        kept = await self._stream(platform, Data(NAME, SIMPLE, address), mover, session)
        if kept is None:
            raise PlatformRefused(platform=platform.name, why=f"{address} can't be streamed to it")
        await self.make(platform, kept.path, None, session.id)
        return kept

    async def _stream(
        self, platform: Platform, pinned: Data, mover: AnyMover | Reason, session: Session
    ) -> KeptImage | None:
        """Stream an image's archive into a system's cache, past this machine's disk; None if there is no such road."""
        if not isinstance(platform, CachesData) or not isinstance(mover, Links):
            return None
        cache = await platform.open_cache()
        journey = Journey(cache, platform.name, session.id, session.person, lambda _: quietly)
        arrival = await take_road(journey, pinned, mover)
        if arrival is None:
            return None
        log.info("job-image.brought", lease=session.id, road=arrival.taken.describe(platform.name))
        content = cache.find_content(arrival.entry)
        return KeptImage(content, read_name(arrival.entry))

    async def make(self, platform: Platform, content: str, archive: ArchiveReader | None, user: str) -> bool:
        """Have a system convert an archive that it keeps to an image file or unpack it; return whether it could.

        Without a local `archive`, the system reads its own copy. If it can't, each session converts the archive.
        """
        with suppress(SubletError):
            for tool in KEPT_AS_FILES:
                if await platform.find_image_maker(tool):
                    return await platform.make_image(content, tool, archive, user)
            tools = (await platform.survey()).tools
            for tool, program in PROGRAMS_FOR_UNPACKED.items():
                if program in tools:
                    return await platform.make_image(content, tool, archive, user)
        return False

    async def _send(self, platform: Platform, pinned: Data, mover: Mover, tool: str, user: str) -> KeptImage:
        """Assemble an image here and send it: for a system without a cache, or without a Python that reads archives."""
        folder = self.home / f"{platform.name}-{_digest(pinned).rpartition(':')[2]}"
        try:
            await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
            await mover.bring(pinned, folder, quietly)
            [archive] = [file for file in folder.iterdir() if file.is_file()]
            content = await platform.keep(archive, "", user)
            if not await platform.make_image(content, tool, ArchiveFile(str(archive)), user):
                raise PlatformRefused(platform=platform.name, why=f"no image could be made there of {pinned.location}")
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        place = os.path.dirname(content)
        return KeptImage(f"{place}/image.sif", read_name(os.path.basename(place)))


def name_archive(address: str) -> str:
    """Return the name for the archive of an image that is addressed by its digest."""
    return f"archive-{address.rpartition('@')[2]}"


def _digest(pinned: Data) -> str:
    """Return the digest of a pinned image."""
    return pinned.location.rpartition("@")[2]
