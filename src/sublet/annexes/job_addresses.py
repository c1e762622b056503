"""Data that jobs behind a spool name by address, copied once to their system's cache for all jobs of a person.

The plug-in of a bridge (`platforms/batch/far/near_plugin.py`) writes a request file into the bridge's directory, and
gets its answer in a file beside it. The data takes the same roads, and has the same names in the cache, as data of
sessions. Its server is asked each time which version it has, so changed data is copied again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from sublet.annexes.model.inputs import by_name
from sublet.annexes.pilots.keeping import keep
from sublet.booking.model.request import Data
from sublet.booking.model.session import Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.data.bringing import CredentialOpener
from sublet.data.executables import Movers
from sublet.data.journeys import Journey
from sublet.data.model.links import can_be_known
from sublet.data.roads import take_road
from sublet.kernel.errors import SubletError
from sublet.kernel.log import log
from sublet.movers.arrival import without_secrets
from sublet.movers.http import name_of
from sublet.movers.port import SIMPLE, Links, Progress
from sublet.platforms.batch.far.near_plugin import REQUESTS
from sublet.platforms.batch.kept import digest_of
from sublet.platforms.caching import CachesData
from sublet.platforms.port import quietly

ALIVE = 2.0  # seconds between heartbeats while data is being copied
FORGOTTEN = 60.0  # seconds after which an unread answer is removed


class NotCached(Exception):
    """Why it is left to HTCondor's own plug-in."""


@dataclass
class JobAddresses:
    """Answers the requests of bridges' plug-ins."""

    platforms: KnownPlatforms
    movers: Movers
    credentials: CredentialOpener

    _tasks: dict[Path, asyncio.Task[None]] = field(default_factory=dict)

    async def look_after(self, bridges: Path, session: Session) -> None:
        """Start to answer new requests, for the nodes of one lease."""
        for request in await asyncio.to_thread(list_requests, bridges):
            if request not in self._tasks:
                self._tasks[request] = asyncio.create_task(self._answer(request, session), name="job address")
        for request in [request for request, task in self._tasks.items() if task.done()]:
            del self._tasks[request]

    async def _answer(self, request: Path, session: Session) -> None:
        alive = asyncio.create_task(_give_signs(request))
        try:
            words = json.loads(await asyncio.to_thread(request.read_bytes))
            if "file" in words:
                path = await self._keep_file(request, words["file"], session)
            else:
                path = await self._bring(words["url"], session)
            answer = {"path": by_name(path)}
            log.info("job-address.kept", session=session.id, platform=session.offer.platform, path=path)
        except (SubletError, OSError, ValueError, LookupError, NotCached) as error:
            answer = {"why": str(error)}
            log.info("job-address.not-kept", session=session.id, platform=session.offer.platform, why=str(error))
        finally:
            alive.cancel()
        with contextlib.suppress(OSError):  # the bridge is gone
            await asyncio.to_thread(keep, request.with_name(f"{request.name}.answer"), json.dumps(answer).encode())

    async def _bring(self, url: str, session: Session) -> str:
        """Copy an address's data to the cache; raise NotCached if its version can't be recognised."""
        platform = self.platforms.get(session.offer.platform)
        movers = self.movers.with_credentials(await self.credentials.open(session.person))
        data = Data(name_of(url), SIMPLE, url)
        mover = movers.choose(data)
        if not isinstance(platform, CachesData) or not isinstance(mover, Links):
            raise NotCached(f"{without_secrets(url)} can't be brought to a cache of {platform.name}")
        files = await mover.links(data)
        if files.is_folder or not can_be_known(files):
            raise NotCached(f"the server of {without_secrets(url)} says nothing by which it is known again")
        journey = Journey(await platform.open_cache(), platform.name, session.id, session.person, _say_nothing)
        arrival = await take_road(journey, data, mover)
        if arrival is None or not arrival.entry or not can_be_known(arrival.files):
            raise NotCached(f"{without_secrets(url)} is not for the cache of {platform.name}")
        log.info("job-address.brought", session=session.id, road=arrival.taken.describe(platform.name))
        return journey.cache.find_content(arrival.entry)

    async def _keep_file(self, request: Path, name: str, session: Session) -> str:
        """Have the system keep, by its content, a file that HTCondor sent to the bridge."""
        digest = await asyncio.to_thread(_read_digest, name, request.parent.parent)
        return await self.platforms.get(session.offer.platform).keep(Path(name), digest, session.id)


def list_requests(bridges: Path) -> list[Path]:
    """List the unanswered requests; remove answers that weren't read in time."""
    unanswered = []
    for request in bridges.glob(f"*/{REQUESTS}/*.json"):
        answer = request.with_name(f"{request.name}.answer")
        with contextlib.suppress(FileNotFoundError):
            if time.time() - answer.stat().st_mtime > FORGOTTEN:
                request.unlink(missing_ok=True)
                answer.unlink(missing_ok=True)
            continue
        unanswered.append(request)
    for answer in bridges.glob(f"*/{REQUESTS}/*.answer"):
        if not answer.with_suffix("").exists():  # the plug-in has given up
            answer.unlink(missing_ok=True)
    return unanswered


async def _give_signs(request: Path) -> None:
    """Touch the request at intervals, so that the plug-in sees progress."""
    while True:
        with contextlib.suppress(OSError):
            os.utime(request)
        await asyncio.sleep(ALIVE)


def _read_digest(name: str, bridge: Path) -> str:
    if not Path(os.path.realpath(name)).is_relative_to(os.path.realpath(bridge)):
        raise NotCached("it is not a file of the bridge")
    return digest_of(Path(name))


def _say_nothing(what: str) -> Progress:
    return quietly
