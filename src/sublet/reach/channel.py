"""A process, such as ssh, at whose far end a `sh` waits for batches, and the exchange of batches with it."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from sublet.kernel.descriptors import restore_limit
from sublet.kernel.streams import closing
from sublet.reach.batch import Batch
from sublet.reach.port import Outcome

_SLICE = 1 << 18
_WIDE = 1 << 20  # bytes that a stream's pipe should hold; usually 64 KiB
_MOST = 1 << 28  # bytes accepted from one stream, so that a runaway command can't fill the service's memory
_LEAVE = 0.25  # seconds to wait for a process to exit: its output is complete, but a login shell's child may delay it
_LAST = 2.0  # seconds to wait for a process to exit after it has closed its streams
_MERCY = 5.0  # seconds between SIGTERM and SIGKILL for a command that takes too long
_STDOUT, _STDERR = 1, 2
STOPPED = 124  # the exit code of `timeout` for a command that it ended by SIGTERM


class Cut(Exception):
    """The far side went away before it had answered: whether it had begun, how the process ended, its last words."""

    def __init__(self, begun: bool, code: int | None, words: str) -> None:
        """Keep what is known about the cut; `code` is None while the process runs."""
        self.begun, self.code, self.words = begun, code, words
        super().__init__(words)


class NotSent(Cut):
    """There was no way to the far side, so nothing was run there."""

    def __init__(self, words: str) -> None:
        """Keep ssh's message."""
        super().__init__(False, None, words)


class Channel(asyncio.SubprocessProtocol):
    """A process that takes batches; closing it doesn't wait for children that it left in the background."""

    def __init__(self, alone: bool) -> None:
        """Prepare for a process; `alone` means that it leads its own process group."""
        self._alone = alone
        self._said = {_STDOUT: bytearray(), _STDERR: bytearray()}
        self._news, self._ended, self._room = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._room.set()
        self._closed: set[int] = set()  # streams that the process has closed

    @classmethod
    async def open(
        cls,
        argv: Sequence[str | bytes],
        *,
        environment: Mapping[str, str] | None = None,
        alone: bool = True,
        directory: Path | None = None,
    ) -> Channel:
        """Start a process; if it isn't `alone` it keeps the terminal, so that it can ask the person there."""
        process, channel = await asyncio.get_running_loop().subprocess_exec(
            lambda: cls(alone), *argv, env=environment, start_new_session=alone, cwd=directory
        )
        restore_limit(process.get_pid())
        return channel

    async def exchange(
        self, batch: Batch, seconds: float, *, is_sent: bool = False, last: bool = False
    ) -> list[Outcome]:
        """Send a batch and return its outcomes; raise Cut if the far side goes away, or TimeoutError.

        A batch that `is_sent` already, in the exec's command line, isn't sent again. After the `last` batch stdin is
        closed, so the far side ends by itself, which saves a round trip.
        """
        feeding = asyncio.create_task(self._feed([] if is_sent else list(batch.pieces()), last))
        try:
            async with asyncio.timeout(seconds):
                for fd in self._said:
                    await self._until_over(fd, batch)
            return batch.read(self._said[_STDOUT], self._said[_STDERR])
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)  # ignores the feeder's cancellation, but not our own
            for stream in self._said.values():
                stream.clear()

    async def answer(self, given: bytes, seconds: float) -> Outcome:
        """Send stdin to a process that runs the command directly, without a `sh`; return its outcome once it has ended.

        After `seconds` the command gets SIGTERM and then SIGKILL, and its exit code is that of `timeout`. Processes
        that it left in the background aren't waited for.
        """
        feeding = asyncio.create_task(self._feed([given], last=True))
        try:
            late = await self._until_ended(seconds)
            await self._until_read()
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)  # ignores the feeder's cancellation, but not our own
        code = self._transport.get_returncode() or 0
        shown_code = STOPPED if late else code if code >= 0 else 128 - code
        return Outcome(shown_code, bytes(self._said[_STDOUT]), bytes(self._said[_STDERR]))

    async def pour(self, pieces: AsyncIterator[bytes]) -> Outcome | None:
        """Stream to a process that prints a line when it is ready, and return its outcome once it has ended.

        Returns None if the process ended before it was ready; then nothing was read from the stream.
        """
        while not self._said[_STDOUT] and not self._ended.is_set():
            await self._news.wait()
            self._news.clear()
        if not self._said[_STDOUT]:
            return None
        self._widen()
        try:
            async with closing(pieces) as pieces:
                async for piece in pieces:
                    await self._feed([piece], last=False)
                    if self._ended.is_set():
                        break
        except BaseException:
            await self._end_stream(_MERCY)  # let the process store what it has read so far
            raise
        await self._end_stream(None)
        await self._until_read()
        code = self._transport.get_returncode() or 0
        return Outcome(code if code >= 0 else 128 - code, b"", bytes(self._said[_STDERR]))

    def _widen(self) -> None:
        """Enlarge the pipe so that both ends work in parallel; only for streams, as a user's pipe memory is limited."""
        with contextlib.suppress(OSError, ValueError, AttributeError):  # the process has ended, or this isn't Linux
            fcntl.fcntl(self._stdin.get_extra_info("pipe").fileno(), fcntl.F_SETPIPE_SZ, _WIDE)

    async def _end_stream(self, seconds: float | None) -> None:
        """Close the process's stdin and wait for the process to end."""
        self._stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    async def _until_ended(self, seconds: float) -> bool:
        """Wait for the process to end, and send SIGTERM, then SIGKILL, if it is late; return whether it was."""
        for number, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, _MERCY)):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience):
                    while not self._ended.is_set():
                        if max(map(len, self._said.values())) > _MOST:
                            raise Cut(True, None, f"it said more than {_MOST >> 20} MiB")
                        await self._news.wait()
                        self._news.clear()
                return number is signal.SIGKILL
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._transport.get_pid(), number)
        await self._ended.wait()
        return True

    async def _until_read(self) -> None:
        """Read what is left in the streams of a process that has ended; a child may hold them open, so not for long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE):
                while not self._closed >= self._said.keys():
                    await self._news.wait()
                    self._news.clear()

    @property
    def complaint(self) -> str:
        """Everything received on stderr so far: messages of ssh and of the far side."""
        return bytes(self._said[_STDERR]).decode("utf-8", "replace")

    async def close(self) -> None:
        """Give the far side a moment to end by itself, then kill the process."""
        self._stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE):
                await self._ended.wait()
        await self.kill()

    async def kill(self) -> None:
        """Kill the process now, with its children on this machine."""
        if not self._ended.is_set():
            with contextlib.suppress(ProcessLookupError):
                if self._alone:
                    os.killpg(self._transport.get_pid(), signal.SIGKILL)
                else:
                    self._transport.kill()
        await asyncio.shield(self._ended.wait())
        self._transport.close()

    async def _until_over(self, fd: int, batch: Batch) -> None:
        stream, seen = self._said[fd], 0
        while not batch.over(stream, seen):
            seen = len(stream)
            if fd in self._closed or seen > _MOST:
                raise await self._cut(batch)
            await self._news.wait()
            self._news.clear()

    async def _cut(self, batch: Batch) -> Cut:
        with contextlib.suppress(TimeoutError):  # its last message may still arrive after one stream has ended
            async with asyncio.timeout(_LAST):
                await self._ended.wait()
                while not self._closed >= self._said.keys():
                    await self._news.wait()
                    self._news.clear()
        stdout, stderr = self._said[_STDOUT], self._said[_STDERR]
        if max(len(stdout), len(stderr)) > _MOST:
            return Cut(True, None, f"it said more than {_MOST >> 20} MiB")
        words = batch.strip_marks(bytes(stderr[-4000:]) or bytes(stdout[-4000:])).decode("utf-8", "replace").strip()
        return Cut(batch.has_begun(stdout), self._transport.get_returncode(), words)

    async def _feed(self, pieces: Sequence[bytes], last: bool) -> None:
        for piece in pieces:
            for start in range(0, len(piece), _SLICE):
                await self._room.wait()
                self._stdin.write(piece[start : start + _SLICE])
        if last:
            self._stdin.close()

    # callbacks of asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport of the process that has started."""
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._stdin = cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Collect output of the process."""
        self._said[fd] += data
        self._news.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Note that the process closed a stream; if that was its stdin, stop waiting for room in it."""
        self._closed.add(fd)
        self._news.set()
        self._room.set()

    def pause_writing(self) -> None:
        """Stop writing: the process reads more slowly than we write."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Go on writing: the process has read the backlog."""
        self._room.set()

    def process_exited(self) -> None:
        """Note that the process has ended; a child may still hold its streams."""
        self._ended.set()
        self._news.set()
