"""The mover of apps' code: unpacks an app's archive from the service's home, if its hash is the pinned one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sublet.apps.model.tree import KIND, MOST_BYTES, MOST_FILES, SCHEME, TreeFile, files_of, hash_of, tree_of
from sublet.apps.model.tree_links import without_links
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.kernel.errors import BadTree
from sublet.movers.arrival import missing, refuse, require_sound
from sublet.movers.port import Policy, Progress

FOLDER = "apps"  # below SUBLET_HOME
MOST_ARCHIVE = MOST_BYTES + MOST_FILES * 4096  # with its headers


@dataclass
class AppMover:
    """Unpacks apps; used only by the kind `app`, never for data that a request names."""

    policy: Policy
    name: str = "app"
    schemes: Sequence[str] = (SCHEME,)
    kinds: Sequence[str] = (KIND,)

    def check(self, data: Data) -> Sequence[Reason]:
        """Return a reason unless the location is the hash of an archive that is here."""
        tree = tree_of(data.location)
        if not tree:
            return [refuse(data, "The code of an app is named by the hash of its archive.")]
        if not self._archive(tree).is_file():
            return [refuse(data, "The code of this app is not here any more.", nearest="another version of the app")]
        return []

    def _archive(self, tree: str) -> Path:
        return (self.policy.app_archives or Path("/nonexistent")) / f"{tree}.tar"

    async def measure(self, data: Data) -> int | None:
        """Return the size of the archive."""
        archive = self._archive(tree_of(data.location))
        return archive.stat().st_size if archive.is_file() else None

    def estimate(self, data: Data) -> timedelta:
        """Return the request's own estimate, or zero: unpacking is fast."""
        return data.prepare or timedelta(0)

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Unpack the archive, which is read only once, so that exactly what was hashed is written."""
        await asyncio.to_thread(self._bring, data, target, progress)

    def _bring(self, data: Data, target: Path, progress: Progress) -> None:
        require_sound(data, self.check(data))
        tree = tree_of(data.location)
        with self._archive(tree).open("rb") as opened:
            archive = opened.read(MOST_ARCHIVE + 1)
        if len(archive) > MOST_ARCHIVE or hash_of(archive) != tree:
            raise missing(data, "its code is not what was pinned: the archive has changed")
        try:
            unpack(without_links(files_of(archive)), target)
        except BadTree as error:
            raise missing(data, error.message) from error
        progress(len(archive), len(archive))


def unpack(files: Sequence[TreeFile], target: Path) -> None:
    """Write files (no links) into a directory; repeating it is harmless."""
    for file in files:
        place = target / file.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        mode = 0o755 if file.executable else 0o644
        opened = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        with os.fdopen(opened, "wb") as writer:
            writer.write(file.content)


def keep(folder: Path, archive: bytes) -> str:
    """Store an archive where the mover finds it; return the hash that names it."""
    tree = hash_of(archive)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = folder / f"{tree}.{os.getpid()}.part"
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as writer:
        writer.write(archive)
    part.replace(folder / f"{tree}.tar")
    return tree
