"""Operations in a session's pod while it exists: send files and orders, stream its output, and fetch its results."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO

from sublet.kernel.errors import PlatformRefused, PlatformUnreachable, SubletError
from sublet.platforms.kubernetes.api import ApiServer, ObjectMissing
from sublet.platforms.kubernetes.kept import KeptInput
from sublet.platforms.kubernetes.manifests import read_script
from sublet.platforms.kubernetes.names import KEEPER, MAIN, STAGE
from sublet.platforms.kubernetes.session import PodSession
from sublet.platforms.kubernetes.states import Left
from sublet.platforms.kubernetes.streams import STDERR, STDOUT, PodStreams

BLOCK = 1 << 17
QUIET = 60.0  # seconds without a reader after which following stops
WORDS = 2000
ORDER = 'printf "%s\\n" "$1" >/sublet/own/order.part && mv /sublet/own/order.part "/sublet/own/$2"'


class PodFiles:
    """The files of sessions, here and in their pods."""

    def __init__(self, api: ApiServer) -> None:
        """Start without following any output."""
        self._api, self._platform, self._streams = api, api.platform, PodStreams(api)
        self._following: dict[str, asyncio.Task[None]] = {}
        self._asked: dict[str, float] = {}  # when someone last wanted to read a session's output

    async def run(self, pod: str, container: str, script: str, *words: str) -> bytes:
        """Run one of our scripts in a container, and return its output."""
        output, errors = bytearray(), bytearray()
        code = await self._streams.run(
            pod,
            container,
            ["sh", "-c", script, "sublet", *words],
            lambda channel, content: (errors if channel == STDERR else output).extend(content),
        )
        if code:
            raise self._refuse(code, bytes(errors))
        return bytes(output)

    def _refuse(self, code: int, errors: bytes) -> PlatformRefused:
        words = errors.decode("utf-8", "replace").strip()[-WORDS:] or f"it exited with {code}"
        return PlatformRefused(platform=self._platform, why=f"what was run in its pod failed: {words}")

    async def order(self, pod: str, name: str, text: str, container: str = KEEPER) -> None:
        """Leave an order for the keeper: `cancel`, `until` or `done`; or for the stage container: `node`."""
        await self.run(pod, container, ORDER, text, name)

    async def send(self, session: PodSession, pod: str, keeps_days: int = 0) -> int:
        """Send a session's files to a pod that waits for them, those that a claim keeps (for this many days) only once.

        Return how many bytes were sent.
        """
        kept = await asyncio.to_thread(session.list_large) if keeps_days else []
        carried = await self._keep(session, pod, kept, keeps_days) if kept else 0
        packed = session.root / f"sent.{pod}.tgz"
        try:
            size = await asyncio.to_thread(session.pack_into, packed, {each.path for each in kept})
            await self._pour(pod, "receive", _read_file(packed), str(size))
        finally:
            packed.unlink(missing_ok=True)
        return carried + size

    async def _keep(self, session: PodSession, pod: str, kept: Sequence[KeptInput], days: int) -> int:
        """Put these files into the claim, and links to them into the session; return how many bytes had to be sent."""
        pairs = [word for each in kept for word in (each.digest, each.path)]
        absent = set((await self.run(pod, STAGE, read_script("link_kept"), str(days), *pairs)).decode().split())
        carried = 0
        for each in {each.digest: each for each in kept if each.digest in absent}.values():
            file = _read_file(session.root / each.path)
            await self._pour(pod, "keep_file", file, each.digest, str(each.size), session.key)
            carried += each.size
        if absent:
            await self.run(pod, STAGE, read_script("link_kept"), str(days), *pairs)
        return carried

    async def _pour(self, pod: str, script: str, content: AsyncIterator[bytes], *words: str) -> None:
        """Run one of our scripts in a pod's stage container, with this content as its stdin."""
        errors = bytearray()
        argv = ["sh", "-c", read_script(script), "sublet", *words]
        code = await self._streams.run(pod, STAGE, argv, lambda channel, piece: errors.extend(piece), content)
        if code:
            raise self._refuse(code, bytes(errors))

    async def collect(self, session: PodSession, pod: str, node: int = 0) -> Left:
        """Fetch the results from one of a session's nodes, and put them in place here."""
        await self.stop_following(session.key)
        archive, errors = session.root / f"left.{os.getpid()}.tar", bytearray()
        try:
            with archive.open("wb") as file:
                code = await self._streams.run(
                    pod,
                    KEEPER,
                    ["sh", "-c", read_script("collect")],
                    lambda channel, content: _put_apart(channel, content, file, errors),
                )
            if code:
                raise self._refuse(code, bytes(errors))
            left = await asyncio.to_thread(session.unpack, archive, node)
            if session.prints_to_log:
                await self._fetch_log(session, pod, node)
            return left
        finally:
            archive.unlink(missing_ok=True)

    async def _fetch_log(self, session: PodSession, pod: str, node: int) -> None:
        """Fetch the output of an image's own entrypoint, which is only in its container's log."""
        target = session.find_output(node)
        with (session.root / "stdout.log").open("wb") as file:
            async with self._api.read_log(pod, MAIN) as blocks:
                async for block in blocks:
                    file.write(block)
        (session.root / "stdout.log").rename(target)

    # Output

    def follow(self, session: PodSession, pod: str) -> None:
        """Stream a session's output here as long as someone reads it."""
        self._asked[session.key] = asyncio.get_running_loop().time()
        if session.key not in self._following:
            task = asyncio.create_task(self._follow(session, pod))
            self._following[session.key] = task
            task.add_done_callback(lambda done: self._forget(session.key, done))

    def _forget(self, key: str, done: asyncio.Task[None]) -> None:
        if self._following.get(key) is done:
            del self._following[key]
            self._asked.pop(key, None)

    async def _follow(self, session: PodSession, pod: str) -> None:
        files = {STDOUT: session.root / "stdout", STDERR: session.root / "stderr"}
        if session.prints_to_log:
            reading = asyncio.create_task(self._follow_log(pod, files[STDOUT]))
        else:
            begins = [str(_size(files[channel]) + 1) for channel in (STDOUT, STDERR)]
            words = ["sh", "-c", read_script("follow"), "sublet", *begins]
            take = partial(_append_to, files)
            reading = asyncio.create_task(self._streams.run(pod, KEEPER, words, take))
        clock = asyncio.get_running_loop().time
        try:
            while not reading.done() and clock() - self._asked.get(session.key, 0) < QUIET:
                await asyncio.wait([reading], timeout=QUIET / 10)
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError, SubletError, ObjectMissing, OSError):
                await reading

    async def _follow_log(self, pod: str, target: Path) -> int:
        """Follow a container's log, which has no offsets; the part that is here already is skipped."""
        known, seen = _size(target), 0
        async with self._api.read_log(pod, MAIN, follow="true") as blocks:
            async for block in blocks:
                fresh = block[max(0, known - seen) :]
                seen += len(block)
                _append(target, fresh)
        return 0

    async def stop_following(self, key: str) -> None:
        """Stop streaming a session's output, because its whole output is fetched now."""
        task = self._following.pop(key, None)
        self._asked.pop(key, None)
        if task:
            task.cancel()
            with suppress(asyncio.CancelledError, PlatformUnreachable):
                await task

    async def close(self) -> None:
        """Stop streaming all output."""
        for key in list(self._following):
            await self.stop_following(key)


def _put_apart(channel: int, content: bytes, output: IO[bytes], errors: bytearray) -> None:
    if channel == STDOUT:
        output.write(content)
    else:
        errors.extend(content)


async def _read_file(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while block := await asyncio.to_thread(file.read, BLOCK):
            yield block


def _append_to(files: Mapping[int, Path], channel: int, content: bytes) -> None:
    _append(files[channel], content)


def _append(path: Path, content: bytes) -> None:
    with path.open("ab") as file:
        file.write(content)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
