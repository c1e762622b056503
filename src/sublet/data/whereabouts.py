"""Finds the cache entries of data before it is brought, so that systems can be asked what they have."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from sublet.booking.model.request import Data, Request
from sublet.data.executables import Movers
from sublet.data.model.links import LinkedFiles, can_be_known, name_entry
from sublet.data.named_links import NamedLinks
from sublet.data.placing import can_travel, is_shared_here
from sublet.data.roads import is_small
from sublet.kernel.errors import SubletError
from sublet.movers.port import AnyMover, FindsLeft, KnowsContent, Links, NoLinks, Pins, PlansTool, Resolves, SignsIn
from sublet.platforms.batch.kept import digest_of, name_image, name_of

MOMENT = 2.0  # seconds that a request waits for an answer about one item
FRESH = 60.0  # seconds for which an answer about a tag, or the lack of one, stays valid
Key = TypeVar("Key")
Value = TypeVar("Value")
MOST = 1000  # files and images that are remembered


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What is known of data before it is brought."""

    entry: str = ""  # its name in every system's cache; empty: not known
    archive: str = ""  # a registry image's cache entry as an archive, for systems that don't pull it
    platform: str = ""  # the system on which another session left it
    size: int | None = None
    has_asked: bool = False  # its server was asked, and knows nothing more


NOWHERE, UNANSWERED = Whereabouts(), Whereabouts(has_asked=True)


@dataclass
class EntryFinder:
    """Finds the cache entries of data, and remembers the answers that take long."""

    # Address → when it was asked, and the answer
    _images: dict[str, tuple[float, Whereabouts]] = field(default_factory=dict)
    _files: dict[tuple[object, ...], str] = field(default_factory=dict)  # file status → cache entry

    async def find(self, movers: Movers, mover: AnyMover, request: Request, data: Data, person: str) -> Whereabouts:
        """Find the cache entry of data that a request or its kind needs, within a short time limit."""
        with suppress(SubletError, NoLinks, TimeoutError, OSError):
            async with asyncio.timeout(MOMENT):
                if is_shared_here(data):
                    return await self._find_shared(data)
                if not can_travel(request, data):
                    return NOWHERE
                if isinstance(mover, Resolves):
                    return await _find_linked(NamedLinks(movers, mover), data, person)
                if isinstance(mover, KnowsContent):
                    return await _find_known(mover, data, person)
                if isinstance(mover, Links):
                    return await _find_linked(mover, data, person)
                if isinstance(mover, PlansTool):
                    return await _find_planned(mover, data, person)
                if isinstance(mover, FindsLeft):
                    left = await mover.find_left(data)
                    return Whereabouts(platform=left.platform, size=left.size)
                return NOWHERE
        return UNANSWERED if isinstance(mover, Links | PlansTool | KnowsContent) else NOWHERE

    async def find_image(self, mover: object, data: Data) -> Whereabouts:
        """Find the cache entry of a registry image; systems never pull with this service's own logins."""
        if not isinstance(mover, Pins):
            return NOWHERE
        when, where = self._images.get(data.location, (0.0, NOWHERE))
        if not when or time.monotonic() - when > FRESH:
            where = await _ask_registry(mover, data)
            _make_room(self._images)
            self._images[data.location] = time.monotonic(), where
        return where

    async def _find_shared(self, data: Data) -> Whereabouts:
        """Find the entry of a file of this machine by its content, which is read only once."""
        return await asyncio.to_thread(self._read, Path(unquote(urlsplit(data.location).path)))

    def _read(self, file: Path) -> Whereabouts:
        status = os.stat(file)
        state = (str(file), status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev)
        if state not in self._files:
            _make_room(self._files)
            self._files[state] = name_of(digest_of(file))
        return Whereabouts(self._files[state], size=status.st_size)


def _make_room(memory: dict[Key, Value]) -> None:
    """Forget the oldest answers."""
    while len(memory) >= MOST:
        del memory[next(iter(memory))]


async def _find_linked(mover: Links, data: Data, person: str) -> Whereabouts:
    files = await mover.links(data)
    return _name(files, files.size, person)


async def _find_known(mover: KnowsContent, data: Data, person: str) -> Whereabouts:
    try:
        content = await mover.find_content(data)
    except NoLinks:
        return NOWHERE
    return _name(content.named, content.files.size if content.files.links else None, person)


async def _find_planned(mover: PlansTool, data: Data, person: str) -> Whereabouts:
    try:
        plan = await mover.plan(data)
    except NoLinks:
        return NOWHERE
    return _name(plan.named, plan.files.size if plan.files.links else None, person)


def _name(files: LinkedFiles, size: int | None, person: str) -> Whereabouts:
    is_nameless = is_small(files) or not can_be_known(files)
    return Whereabouts("" if is_nameless else name_entry(files, person, ""), size=size, has_asked=True)


async def _ask_registry(mover: Pins, data: Data) -> Whereabouts:
    with suppress(SubletError, TimeoutError, OSError):
        async with asyncio.timeout(MOMENT):
            pinned = await mover.pin(data)
            entry = "" if isinstance(mover, SignsIn) and mover.signs_in(data) else name_image(pinned.location)
            if not isinstance(mover, Links):
                return Whereabouts(entry, size=await mover.measure(pinned))
            files = await mover.links(pinned)
            return Whereabouts(entry, name_entry(files, "", ""), size=files.size)
    return NOWHERE
