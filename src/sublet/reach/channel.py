"""One process whose far end is a listening `sh`, and the exchange of a batch with it."""

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
_WIDE = 1 << 20  # bytes that fit into the pipe of a stream; usually they are 64 KiB
_MOST = 1 << 28  # bytes that one stream may bring; a runaway command must not fill the service's memory
_LEAVE = 0.25  # seconds that a process has to end by itself: all is said, but a child of a login shell may hold it
_LAST = 2.0  # seconds that a process has to end by itself when it has closed its streams
_MERCY = 5.0  # seconds between the word and the force by which a command is ended that takes too long
_STDOUT, _STDERR = 1, 2
STOPPED = 124  # what `timeout` answers for a command that it ended by a word


class Cut(Exception):
    """The far side went away before it had answered: whether it had begun, how the process ended, its last words."""

    def __init__(self, begun: bool, code: int | None, words: str) -> None:
        """Keep what is known; `code` is None while the process goes on."""
        self.begun, self.code, self.words = begun, code, words
        super().__init__(words)


class NotSent(Cut):
    """There was no way to the far side, so nothing was run there."""

    def __init__(self, words: str) -> None:
        """Keep what is known."""
        super().__init__(False, None, words)


class Channel(asyncio.SubprocessProtocol):
    """A process that takes batches; closing it doesn't wait for children that it left in the background."""

    def __init__(self, alone: bool) -> None:
        """Wait for a process; `alone`: it leads a process group of its own."""
        self._alone = alone
        self._said = {_STDOUT: bytearray(), _STDERR: bytearray()}
        self._news, self._ended, self._room = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._room.set()
        self._closed: set[int] = set()  # streams that have come to their end

    @classmethod
    async def open(
        cls,
        argv: Sequence[str | bytes],
        *,
        environment: Mapping[str, str] | None = None,
        alone: bool = True,
        directory: Path | None = None,
    ) -> Channel:
        """Start it; not `alone`: it stays with the terminal, so that it can ask the person there."""
        process, channel = await asyncio.get_running_loop().subprocess_exec(
            lambda: cls(alone), *argv, env=environment, start_new_session=alone, cwd=directory
        )
        restore_limit(process.get_pid())
        return channel

    async def exchange(
        self, batch: Batch, seconds: float, *, is_sent: bool = False, last: bool = False
    ) -> list[Outcome]:
        """Send a batch and wait for all its answers; raises Cut, and TimeoutError after so many seconds.

        One that `is_sent` already, in the words of the exec, is not sent again. After the `last` one the far side
        ends by itself, which saves the round trip of telling it to.
        """
        feeding = asyncio.create_task(self._feed([] if is_sent else list(batch.pieces()), last))
        try:
            async with asyncio.timeout(seconds):
                for fd in self._said:
                    await self._until_over(fd, batch)
            return batch.read(self._said[_STDOUT], self._said[_STDERR])
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)  # a cancellation of this task comes through
            for stream in self._said.values():
                stream.clear()

    async def answer(self, given: bytes, seconds: float) -> Outcome:
        """Of a process that is the command itself: its outcome, once it has read this and ended.

        After so many seconds it is asked to end, and soon made to: its code is then that of `timeout`. What it left in
        the background isn't waited for.
        """
        feeding = asyncio.create_task(self._feed([given], last=True))
        try:
            late = await self._until_ended(seconds)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LEAVE):
                    while not self._closed >= self._said.keys():
                        await self._news.wait()
                        self._news.clear()
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)  # a cancellation of this task comes through
        code = self._transport.get_returncode() or 0
        shown_code = STOPPED if late else code if code >= 0 else 128 - code
        return Outcome(shown_code, bytes(self._said[_STDOUT]), bytes(self._said[_STDERR]))

    async def pour(self, pieces: AsyncIterator[bytes]) -> Outcome | None:
        """Of a process that says a word when it is ready to read: its outcome, once it has read the stream and ended.

        None: it ended before it was ready, and nothing was read from the stream.
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
            await self._end_stream(_MERCY)  # what was read so far counts
            raise
        await self._end_stream(None)
        code = self._transport.get_returncode() or 0
        return Outcome(code if code >= 0 else 128 - code, b"", bytes(self._said[_STDERR]))

    def _widen(self) -> None:
        """Let more fit into the pipe, so that both ends work at the same time; for streams alone, as a user has few."""
        with contextlib.suppress(OSError, AttributeError):  # it has ended; another system than Linux
            fcntl.fcntl(self._stdin.get_extra_info("pipe").fileno(), fcntl.F_SETPIPE_SZ, _WIDE)

    async def _end_stream(self, seconds: float | None) -> None:
        """Let the process see the end of what it reads, and wait for its own."""
        self._stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    async def _until_ended(self, seconds: float) -> bool:
        """Wait for the end of the process, then for that which a word of ours brings; whether that had to be said."""
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

    @property
    def complaint(self) -> str:
        """What came so far that is no answer: the words of ssh itself, and of who is at the far side's door."""
        return bytes(self._said[_STDERR]).decode("utf-8", "replace")

    async def close(self) -> None:
        """Let the far side end by itself in a moment, else end it."""
        self._stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE):
                await self._ended.wait()
        await self.kill()

    async def kill(self) -> None:
        """End it now, with its children on this machine."""
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
        with contextlib.suppress(TimeoutError):  # its last words may be on their way while another stream has ended
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

    # what asyncio calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The process has started."""
        self._transport = cast(asyncio.SubprocessTransport, transport)
        self._stdin = cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """It said something."""
        self._said[fd] += data
        self._news.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """It closed a stream; for its stdin that means that the rest can be thrown away."""
        self._closed.add(fd)
        self._news.set()
        self._room.set()

    def pause_writing(self) -> None:
        """It reads more slowly than we write."""
        self._room.clear()

    def resume_writing(self) -> None:
        """It has read what was waiting."""
        self._room.set()

    def process_exited(self) -> None:
        """It has ended, though a child of it may still hold its streams."""
        self._ended.set()
        self._news.set()
