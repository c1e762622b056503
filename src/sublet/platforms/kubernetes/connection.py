"""The connection to an API server: made when it is needed, and made again when the kubeconfig has been renewed."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sublet.kernel.errors import LoginNeeded
from sublet.platforms.kubernetes.access import AccessSettings, BadAccess, open_access
from sublet.platforms.kubernetes.api import RENEW, ApiServer
from sublet.platforms.kubernetes.forwards import PortForwards
from sublet.platforms.kubernetes.jobs import SessionJobs
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
    _stamp: object = None

    async def open(self) -> SessionJobs:
        """Connect if necessary, and return the jobs there."""
        stamp = self._read_stamp()
        if self.jobs and stamp == self._stamp:
            return self.jobs
        await self.close()
        try:
            access = await asyncio.to_thread(open_access, self.settings)
        except BadAccess as error:
            words = f"{self.platform} can't be entered: {error}."
            raise LoginNeeded(words, platform=self.platform, hint=RENEW) from error
        api = ApiServer(self.platform, access)
        self.jobs, self._stamp, self._has_told = SessionJobs(api, self.place), stamp, False
        self.forwards = PortForwards(PodStreams(api))
        self.jobs.start()
        return self.jobs

    def _read_stamp(self) -> object:
        """Return a value that changes when someone renews the kubeconfig."""
        file = Path(self.settings.kubeconfig or os.environ.get("KUBECONFIG", "") or "~/.kube/config").expanduser()
        with suppress(OSError):
            seen = file.stat()
            return (seen.st_mtime_ns, seen.st_size, seen.st_ino)
        return None

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
