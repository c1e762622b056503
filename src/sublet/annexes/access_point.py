"""The owner's access point: found or started when first needed, and kept running."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from sublet.annexes.pilots.access_point import LOOPBACK, AccessPoint, WantedPoint, find_access_point, read_access_point
from sublet.annexes.pilots.fetching import (
    CHECKSUMS,
    checksum_of,
    package_command,
    release_url,
    this_os,
    to_try,
    to_unpack,
)
from sublet.annexes.pilots.fetching import find_unpacked as unpacked_release
from sublet.annexes.pilots.own import Contact
from sublet.booking.model.request import Data
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.errors import NoHTCondor, ReleaseRefused, SubletError
from sublet.kernel.log import log
from sublet.kernel.settings import Settings
from sublet.movers.http import HttpMover
from sublet.movers.port import UNLIMITED
from sublet.platforms.htcondor.release import Release, find_release
from sublet.reach.local import LocalReach

TENDED = timedelta(seconds=30)  # how often it is checked
PLACE = "htcondor"  # below SUBLET_HOME: the release that was downloaded
Stage = Literal["absent", "fetching", "stopped", "ready", "failed"]


@dataclass(frozen=True)
class AccessPointState:
    """The state of the access point."""

    stage: Stage
    kind: str = ""  # own, machine
    version: str = ""  # HTCondor's
    release: str = ""  # the directory of HTCondor
    contact: Contact | None = None
    configuration: str = ""  # the value of CONDOR_CONFIG for HTCondor's own tools; empty: none needed
    lease: timedelta | None = None
    package: str = ""  # the command with which an administrator would install HTCondor
    url: str = ""  # the archive to download
    progress: str = ""
    note: str = ""
    failure: SubletError | None = None


@dataclass
class AccessPoints:
    """Finds, starts, describes and stops the access point."""

    settings: Settings
    now: Clock
    platforms: KnownPlatforms
    authority: Authority

    point: AccessPoint | None = None  # None until it was first looked for
    _well: datetime | None = None  # when it last answered
    _starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    _tending: asyncio.Task[None] | None = None
    _fetching: asyncio.Task[None] | None = None
    _fetched: str = ""  # the progress of the download
    _fetch_failure: SubletError | None = None
    _tended: datetime | None = None

    async def access_point(self, system: str = "") -> AccessPoint:
        """Return the running access point, starting it if needed; the nodes of `system` have to reach it."""
        self.authority.require_owner()
        async with self._starting:
            now = self.now()
            if self.point is None or (system and self.point.contact.collector.startswith(f"{LOOPBACK}:")):
                self.point = await find_access_point(self.settings.home, self._find_wanted_point(), self._host(system))
                self._well = None
            if self._well is None or abs(now - self._well) >= TENDED:
                await self.point.start(now)
                self._well = now
                self._unwanted.unlink(missing_ok=True)
            return self.point

    async def look_after(self, now: datetime) -> None:
        """Restart the access point if it has ended; checked at the service's start, and then at intervals."""
        if self._tended and abs(now - self._tended) < TENDED:
            return
        self._tended = now
        wanted = self.point or (read_access_point(self.settings.home) and not self._unwanted.exists())
        if wanted and (self._tending is None or self._tending.done()):
            self._tending = asyncio.create_task(self._tend(), name="access point")

    async def _tend(self) -> None:
        try:
            await self.access_point()
        except (SubletError, OSError) as error:
            self.point = None  # the machine's address may have changed
            log.warning("access_point.failed", why=str(error))

    async def stop_access_point(self) -> None:
        """Stop the access point if Sublet started it, until it is needed again; the queue is kept."""
        self.authority.require_owner()
        async with self._starting:
            known = read_access_point(self.settings.home)
            self.point = self._well = None
            if known:
                self._unwanted.touch(mode=0o600)
                await known.stop()
                log.info("access_point.stopped")

    @property
    def _unwanted(self) -> Path:
        """The path of a file that exists while the access point is stopped by the person."""
        return self.settings.home / "ap" / "stopped"

    async def set_up(self, *, fetch: bool, system: str = "") -> AccessPointState:
        """Make the access point ready; if HTCondor is missing, start to download it if `fetch` is set."""
        self.authority.require_owner()
        self.point = self._well = None
        try:
            await self.access_point(system)
        except NoHTCondor:
            if not fetch:
                raise
            if self._fetching is None:
                self._fetch_failure, self._fetched = None, ""
                self._fetching = asyncio.create_task(self._fetch(), name="htcondor")
        return await self.access_point_state()

    async def access_point_state(self) -> AccessPointState:
        """Return the state of the access point, without starting it."""
        self.authority.require_owner()
        settings = self.settings.annex
        if self._fetching:
            return AccessPointState("fetching", url=settings.release, progress=self._fetched)
        try:
            release = find_release(self.settings.home / PLACE)
            version = await LocalReach("access point").run(to_try(release))
        except SubletError as error:
            failure = self._fetch_failure or (None if isinstance(error, NoHTCondor) else error)
            package = package_command(this_os())
            with contextlib.suppress(ReleaseRefused):
                url = release_url(settings.release, this_os())
                return AccessPointState("absent", package=package, url=url, failure=failure)
            return AccessPointState("absent", package=package, failure=failure)
        return await self._stage(release, version)

    async def _stage(self, release: Release, version: str) -> AccessPointState:
        place = str(release.bin.parent)
        known = read_access_point(self.settings.home)
        if known is None:
            return AccessPointState("stopped", version=version, release=place)
        if known.master.pid() is None:
            return AccessPointState("stopped", version=version, release=place, lease=known.lease)
        try:
            point = await self.access_point()
        except SubletError as error:
            return AccessPointState("failed", version=version, release=place, failure=error)
        return AccessPointState(
            "ready",
            kind=point.kind,
            version=version,
            release=place,
            contact=point.contact,
            configuration=point.tools.configuration,
            lease=point.lease,
            note=point.note,
        )

    def _find_wanted_point(self) -> WantedPoint:
        set_up = self.settings.annex
        return WantedPoint(set_up.use, set_up.address, set_up.bind, set_up.port, set_up.job_lease)

    def _host(self, system: str) -> str:
        """Return the login host of a system, or of any system, to find an address of this machine that it can reach."""
        if system:
            return str(getattr(self.platforms.get(system), "host", ""))
        hosts = (getattr(platform, "host", "") for platform in self.platforms.by_name.values() if platform.has_queues)
        return str(next((host for host in hosts if host), ""))

    async def _fetch(self) -> None:
        """Download a release, check it, unpack it in a scratch directory, and move it to its place."""
        home = self.settings.home
        try:
            url = release_url(self.settings.annex.release, this_os())
            with tempfile.TemporaryDirectory(prefix=f".{PLACE}-", dir=home) as scratch:
                archive = await self.bring_release(url, await self.find_checksum(url), Path(scratch))
                self._fetched = "unpacking"
                made = Path(scratch) / "unpacked"
                made.mkdir()
                here = LocalReach("access point")
                await here.run(to_unpack(str(archive), str(made)))
                await here.run(to_try(unpacked_release(made)))
                await asyncio.to_thread(shutil.rmtree, home / PLACE, ignore_errors=True)
                made.rename(home / PLACE)
            log.info("htcondor.fetched", url=url)
        except (SubletError, OSError) as error:
            self._fetch_failure = error if isinstance(error, SubletError) else ReleaseRefused(why=str(error))
            log.warning("htcondor.refused", why=str(error))
        finally:
            self._fetching = None

    async def find_checksum(self, url: str) -> str:
        """Return the expected checksum of a release: from the settings, or from the list that its server publishes."""
        if self.settings.annex.release_sha256:
            return self.settings.annex.release_sha256.lower()
        address, _, name = url.rpartition("/")
        if urlsplit(url).scheme != "https":
            raise ReleaseRefused(why=f"nothing says what the checksum of {url} has to be")
        with tempfile.TemporaryDirectory() as scratch:
            listed = await self.bring_release(f"{address}/{CHECKSUMS}", "", Path(scratch))
            checksum = checksum_of(listed.read_text(errors="replace"), name)
        if not checksum:
            raise ReleaseRefused(why=f"{address}/{CHECKSUMS} doesn't list {name}")
        return checksum

    async def bring_release(self, url: str, checksum: str, target: Path) -> Path:
        data = Data("HTCondor", "simple-data-resource", url, checksum=f"sha256:{checksum}" if checksum else "")

        def progress(done: int, total: int | None) -> None:
            self._fetched = f"{done * 100 // total} %" if total else f"{done >> 20} MiB"

        await HttpMover(UNLIMITED).bring(data, target, progress)
        return await asyncio.to_thread(_only_file, target)


def _only_file(directory: Path) -> Path:
    return next(path for path in directory.iterdir() if path.is_file())
