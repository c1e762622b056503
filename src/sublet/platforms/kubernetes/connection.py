"""The connection to an API server: made when it is needed, and made again when a kubeconfig has been renewed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from sublet.kernel.errors import LoginNeeded
from sublet.platforms.kubernetes.access import AccessSettings, list_config_files, open_access
from sublet.platforms.kubernetes.api import RENEW, ApiServer
from sublet.platforms.kubernetes.forwards import PortForwards
from sublet.platforms.kubernetes.jobs import SessionJobs
from sublet.platforms.kubernetes.kubeconfig import BadAccess
from sublet.platforms.kubernetes.manifests import PodPlace
from sublet.platforms.kubernetes.streams import PodStreams


@dataclass
class ClusterConnection:
    """A platform's connection to its cluster."""

    platform: str
    settings: AccessSettings
    place: PodPlace
    jobs: SessionJobs | None = None
    forwards: PortForwards | None = None
    _has_told: bool = False
    _loaded: tuple[Path, ...] = ()  # the files with certificates that the connection uses
    _stamps: object = None
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def open(self) -> SessionJobs:
        """Connect if necessary, and return the jobs there."""
        async with self._opening:  # or two callers would leave a connection, with its watches, that nobody closes
            return await self._open()

    async def _open(self) -> SessionJobs:
        configs = _read_stamps(list_config_files(self.settings))
        if self.jobs and self._stamps == (configs, _read_stamps(self._loaded)):
            return self.jobs
        await self.close()
        try:
            access = await asyncio.to_thread(open_access, self.settings)
        except BadAccess as error:
            words = f"{self.platform} can't be entered: {error}."
            raise LoginNeeded(words, platform=self.platform, hint=RENEW) from error
        api = ApiServer(self.platform, access)
        self._loaded, self._has_told = access.files, False
        self._stamps = (configs, _read_stamps(self._loaded))
        self.jobs = SessionJobs(api, self.place)
        self.forwards = PortForwards(PodStreams(api))
        self.jobs.start()
        return self.jobs

    def has_told_before(self) -> bool:
        """Whether changes were reported before on this connection; the next call returns True."""
        before, self._has_told = self._has_told, True
        return before

    async def close(self) -> None:
        """Close the connection; running sessions continue."""
        if self.forwards:
            await self.forwards.close_all()
        if self.jobs:
            await self.jobs.close()
        self.jobs = self.forwards = None


def _read_stamps(files: Iterable[Path]) -> tuple[object, ...]:
    """Return a value that changes when someone creates, renews or removes one of these files."""
    return tuple(_read_stamp(file) for file in files)


def _read_stamp(file: Path) -> object:
    try:
        seen = file.stat()
    except OSError:
        return file
    return (file, seen.st_mtime_ns, seen.st_size, seen.st_ino)
