"""The output and results of sessions on a system: read there, or here once they were fetched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

from sublet.booking.model.job import State
from sublet.kernel.errors import NotFound, PlatformRefused
from sublet.kernel.path_texts import restore_path
from sublet.platforms.batch import commands as to
from sublet.platforms.batch.failures import Failures
from sublet.platforms.batch.guest import GuestDirectory
from sublet.platforms.batch.home import Fetched, Stream
from sublet.platforms.batch.quoting import inside
from sublet.platforms.batch.watch import SiteWatch
from sublet.platforms.port import Results
from sublet.reach.files import to_sizes
from sublet.reach.port import Reach

CHUNK = 1 << 22


class Leavings:
    """The output and results of one platform's sessions."""

    def __init__(self, failures: Failures, reach: Reach, home: Path, guest: GuestDirectory, watch: SiteWatch) -> None:
        """Set the guest's directory, and the watch that knows which sessions have several parts."""
        self._failures, self._reach, self._home, self._guest, self._watch = failures, reach, home, guest, watch

    def _find_fetched(self, key: str) -> Fetched:
        return Fetched(self._home, self._failures.platform, self._guest.check_key(key))

    async def output(self, key: str, stream: Stream, offset: int, limit: int) -> bytes:
        """Return part of the output; while several parts run, it covers the first running part and those before it."""
        if (fetched := self._find_fetched(key)).there:
            return await asyncio.to_thread(fetched.output, stream, offset, limit)
        path = f"{await self._guest.session_directory(key)}/{stream}"
        look = self._watch.look(key)
        try:
            if look.parts == 1 or look.joined:
                return await self._reach.read(path, offset, limit)
        except PlatformRefused:
            if look.claimed:
                return b""  # it has printed nothing yet, or was cleaned up
        return await self._reach.run(to.to_output(await self._guest.root(), key, stream, offset, limit))

    async def output_size(self, key: str, stream: Stream) -> int | None:
        """Return the size of the output if it is a single file; None if it is in several."""
        if (fetched := self._find_fetched(key)).there:
            return await asyncio.to_thread(fetched.output_size, stream)
        look, path = self._watch.look(key), f"{await self._guest.session_directory(key)}/{stream}"
        if look.parts == 1 or look.joined:
            return (await self._reach.run(to_sizes([path]))).get(path, 0)
        return None

    async def results(self, key: str) -> Results:
        """List the results in the session's working directory."""
        self._find_fetched(key).check()
        return await self._reach.run(to.to_results(await self._guest.root(), key))

    async def read(self, key: str, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """Read a result file in pieces, from an offset."""
        self._find_fetched(key).check()
        relative = inside(restore_path(path), self._failures.platform)
        root = await self._guest.root()
        while piece := await self._reach.run(to.to_result(root, key, relative, offset, CHUNK)):
            yield piece
            offset += len(piece)
        if piece is None:
            raise NotFound(noun="result", name=path, hint="`sublet result` lists the files.")

    async def clean(self, key: str) -> None:
        """Remove the session's directories, there and here; raise PlatformRefused if it still runs."""
        fetched = self._find_fetched(key)
        if not fetched.there:
            await self._clean_there(key)
        await asyncio.to_thread(fetched.forget)
        await self._guest.forget(key)

    async def _clean_there(self, key: str) -> None:
        root = await self._guest.root()
        state = (await self._watch.ask(self._reach, root, [key]))[key]
        if state.state in (State.RUNNING, State.QUEUED):
            raise PlatformRefused(
                platform=self._failures.platform, why="the session still runs", hint="Cancel it first."
            )
        await self._reach.run(to.to_clean(self._failures, root, key))
        self._watch.note_cleaned(key)
        await self._reach.untunnel(key)

    async def come_home(self, key: str) -> None:
        """Keep a local copy of the output, and remove the session from the system."""
        fetched = self._find_fetched(key)
        if not fetched.there:
            await fetched.take(partial(self.output, key))
            await self._clean_there(key)
