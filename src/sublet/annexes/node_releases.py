"""HTCondor for nodes that have none: downloaded once, checked, and kept here and on the systems that need it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from sublet.annexes.access_point import AccessPoints
from sublet.annexes.pilots.node_release import node_release
from sublet.booking.model.session import Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.errors import NotYet, ReleaseRefused, SubletError
from sublet.kernel.log import log
from sublet.kernel.settings import Settings


@dataclass(frozen=True, slots=True)
class NodeRelease:
    """A release, as a local file."""

    sha256: str
    file: Path


@dataclass
class NodeReleases:
    """Provides HTCondor releases for nodes."""

    settings: Settings
    platforms: KnownPlatforms
    access_points: AccessPoints

    _brought: dict[str, asyncio.Task[NodeRelease]] = field(default_factory=dict)  # by their addresses
    _keeping: dict[tuple[str, str], asyncio.Task[bool]] = field(default_factory=dict)  # by platform and digest

    async def node_release(self, arch: str, libc: str) -> NodeRelease:
        """Return the release for such a node; raise NotYet during its download, or ReleaseRefused if there is none."""
        url = node_release(self.settings.annex.release, arch, libc)
        task = self._brought.get(url)
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            task = self._brought[url] = asyncio.create_task(self._bring_release(url), name="node release")
        done, _ = await asyncio.wait([task], timeout=5)
        if not done:
            raise NotYet(what="The release of HTCondor for this node")
        return task.result()

    async def _bring_release(self, url: str) -> NodeRelease:
        sha256 = await self.access_points.find_checksum(url)
        kept = self.settings.home / "pilots" / "releases" / f"{sha256}.tar"
        if not await asyncio.to_thread(kept.exists):
            kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".part-", dir=kept.parent) as scratch:
                archive = await self.access_points.bring_release(url, sha256, Path(scratch))
                await asyncio.to_thread(os.replace, archive, kept)
            log.info("release.fetched", url=url)
        return NodeRelease(sha256, kept)

    def keep_release(self, session: Session, release: NodeRelease) -> asyncio.Task[bool]:
        """Have the session's system keep the release, so that it needn't be sent again; return whether that worked."""

        async def keep() -> bool:
            try:
                platform = self.platforms.get(session.offer.platform)
                await platform.keep(release.file, f"sha256:{release.sha256}", session.id)
                return True
            except (SubletError, OSError) as error:
                log.info("release.not-kept", platform=session.offer.platform, why=str(error))
                return False

        key = (session.offer.platform, release.sha256)
        if key not in self._keeping or self._keeping[key].done():
            self._keeping[key] = asyncio.create_task(keep(), name="keep release")
        return self._keeping[key]

    async def find_kept_release(self, session: Session, arch: str, libc: str) -> str:
        """Return the digest of a node's release once its system has it; raise NotYet before, or ReleaseRefused."""
        release = await self.node_release(arch, libc)
        task = self.keep_release(session, release)
        done, _ = await asyncio.wait([task], timeout=5)
        if not done:
            raise NotYet(what="The release of HTCondor for this node")
        if not task.result():
            raise ReleaseRefused(why=f"it can't be brought to {session.offer.platform}")
        return f"sha256:{release.sha256}"
