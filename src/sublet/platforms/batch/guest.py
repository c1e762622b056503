"""A guest's directory on a system, where nothing is installed. It contains

    sessions/KEY/   one session: work/, data/, stdout, stderr, and its job's records (see shell/job.sh)
    incoming/KEY/   data that was sent before the session was submitted
    kept/           files that many sessions share (see kept.py)
    trash/          what is being removed

The platform's own local directory has `sessions/KEY/`, where movers stage data before it is sent.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from sublet.kernel.errors import PlatformRefused
from sublet.platforms.batch import commands as to
from sublet.platforms.batch.failures import Failures
from sublet.platforms.batch.quoting import inside
from sublet.platforms.port import Progress, quietly
from sublet.platforms.sessiondir import KEY, remove_tree
from sublet.reach.port import Reach

SENT = ("data", "storage", "work")  # the parts of a session's directory that are sent before it is submitted


class GuestDirectory:
    """The directory of one service on one system, and the local files that belong to it."""

    def __init__(self, failures: Failures, reach: Reach, home: Path, directory: str, owner: str) -> None:
        """Set the remote `directory` and the platform's local directory `home`, without connecting."""
        self._failures, self._reach, self._home, self._directory = failures, reach, home, directory
        self.owner = owner
        self._root = ""
        self._carried: set[str] = set()  # sessions whose files were sent, and which aren't submitted yet

    async def root(self) -> str:
        """Return the full path of the remote directory, which is created at the first call."""
        if not self._root:
            self._root = await self._reach.run(to.to_root(self._failures, self._directory))
        return self._root

    def check_key(self, key: str) -> str:
        """Return the key, or raise PlatformRefused if it can't be the name of a directory."""
        if not KEY.fullmatch(key):
            why = f"{key!r} can't be the name of a session's directory"
            raise PlatformRefused(platform=self._failures.platform, why=why)
        return key

    async def session_directory(self, key: str) -> str:
        """Return the session's remote directory."""
        return f"{await self.root()}/sessions/{self.check_key(key)}"

    def place(self, key: str) -> Path:
        """Return the session's local directory, created if needed.

        Data staged in it is sent before the session is submitted.
        """
        place = self._home / "sessions" / self.check_key(key)
        for path in (place, place / "work", place / "data"):
            path.mkdir(mode=0o700, exist_ok=True)
        return place

    async def carry(self, key: str, progress: Progress = quietly) -> None:
        """Send the session's files over the open login."""
        for part in SENT:
            source = self._home / "sessions" / self.check_key(key) / part
            if await asyncio.to_thread(_holds_files, source):
                await self.send(key, source, part, progress)
        self._carried.add(key)

    async def carry_once(self, key: str) -> None:
        """Send the session's files unless that was done before."""
        if key not in self._carried:
            await self.carry(key)

    async def send(self, key: str, source: Path, relative: str, progress: Progress = quietly) -> None:
        """Send a file or directory to a session that isn't submitted yet."""
        root = await self.root()
        target = f"{root}/incoming/{self.check_key(key)}/{inside(relative, self._failures.platform)}"
        await self._reach.run(to.to_incoming(self._failures, root, key, self.owner))
        await self._reach.send(source, target, progress)

    async def leave_to_job(self, key: str) -> None:
        """Remove the local copy of a submitted session's files."""
        self._carried.discard(key)
        await asyncio.to_thread(remove_tree, self._home / "sessions" / key)

    async def forget(self, key: str) -> None:
        """Remove a session's local files."""
        self._carried.discard(key)
        await asyncio.to_thread(shutil.rmtree, self._home / "sessions" / key, ignore_errors=True)

    async def list_left(self, age: timedelta) -> Sequence[str]:
        """List the sessions that this service left there at least `age` ago."""
        keys = await self._reach.run(to.to_sweep(self._failures, await self.root(), self.owner, age))
        return [key for key in dict.fromkeys(keys) if KEY.fullmatch(key)]


def own_name(home: Path) -> str:
    """Return the service's own ID, which marks its sessions on a system; it is created once."""
    file = home / "owner"
    if not file.exists():
        file.write_text(str(uuid4()))
    return file.read_text()


def _holds_files(directory: Path) -> bool:
    return directory.is_dir() and any(directory.iterdir())
