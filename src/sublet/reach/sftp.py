"""An SFTP client over a process that carries the protocol: `ssh -s … sftp`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import struct
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from itertools import count

from sublet.kernel.descriptors import restore_limit
from sublet.kernel.streams import closing
from sublet.reach.sftp_packets import (
    Packet,
    PacketBody,
    RemoteEntry,
    SftpLost,
    SftpRefused,
    SftpStatus,
    pack_bytes,
    pack_text,
    read_piece,
    require_ok,
)

VERSION = 3
PIECE = 1 << 15  # bytes of one read or write, which every server accepts
AT_ONCE = 64  # reads or writes in flight
LONGEST_PACKET = 1 << 20
READ, WRITE, CREATE, TRUNCATE = 1, 2, 8, 16  # flags for opening a file
POSIX_RENAME = "posix-rename@openssh.com"
LONGEST_WORDS = 1 << 14  # bytes of ssh's messages that are kept


class SftpClient:
    """A connection to an SFTP server, with many requests in flight."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        """Use a process that carries the protocol."""
        self._process = process
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[tuple[int, bytes]]] = {}
        self._words = bytearray()
        self._extensions: dict[str, str] = {}
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, argv: Sequence[str], environment: Mapping[str, str]) -> AsyncIterator[SftpClient]:
        """Start the process and initialise the protocol; the process is killed at the end of the block."""
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *argv, stdin=pipe, stdout=pipe, stderr=pipe, env=environment, start_new_session=True, limit=1 << 20
            )
        except FileNotFoundError as error:
            raise SftpLost(f"there is no {argv[0]} on this machine") from error
        restore_limit(process.pid)
        client = cls(process)
        try:
            await client._greet()
            yield client
        finally:
            await client._end()

    async def find(self, path: str, *, follow: bool = True) -> RemoteEntry:
        """Return the attributes of a path; a symbolic link is resolved if `follow` is set."""
        body = await self._ask(Packet.STAT if follow else Packet.LSTAT, pack_text(path), wanted=Packet.ATTRS)
        return PacketBody(body).read_entry()

    async def resolve(self, path: str) -> str:
        """Return the absolute path without symbolic links."""
        body = PacketBody(await self._ask(Packet.REALPATH, pack_text(path), wanted=Packet.NAME))
        body.read_number()
        return body.read_text()

    async def list(self, path: str) -> list[tuple[str, RemoteEntry]]:
        """List a directory's names and entries, without following links."""
        handle = PacketBody(await self._ask(Packet.OPENDIR, pack_text(path), wanted=Packet.HANDLE)).read_bytes()
        entries: list[tuple[str, RemoteEntry]] = []
        try:
            while True:
                body = PacketBody(await self._ask(Packet.READDIR, pack_bytes(handle), wanted=Packet.NAME))
                for _ in range(body.read_number()):
                    name, _, entry = body.read_text(), body.read_bytes(), body.read_entry()
                    if name not in (".", ".."):
                        entries.append((name, entry))
        except SftpRefused as refused:
            if refused.code != SftpStatus.END:
                raise
        finally:
            await self._close(handle)
        return entries

    async def read(self, path: str, offset: int) -> AsyncGenerator[bytes]:
        """Yield a file's content from an offset on, reading ahead."""
        handle = await self._open(path, READ)
        under_way: deque[tuple[int, asyncio.Future[tuple[int, bytes]]]] = deque()
        at = offset
        try:
            while True:
                while len(under_way) < AT_ONCE:
                    under_way.append((at, self._send(Packet.READ, pack_bytes(handle) + struct.pack(">QI", at, PIECE))))
                    at += PIECE
                start, answer = under_way.popleft()
                piece = read_piece(await answer)
                if not piece:
                    return
                yield piece
                if len(piece) < PIECE:  # a short read: request everything after it again
                    await self._drain(under_way)
                    at = start + len(piece)
        finally:
            await self._drain(under_way)
            await self._close(handle)

    async def write(self, path: str, pieces: AsyncIterator[bytes]) -> None:
        """Write a file from a stream, replacing an existing one."""
        handle = await self._open(path, WRITE | CREATE | TRUNCATE)
        under_way: deque[tuple[int, asyncio.Future[tuple[int, bytes]]]] = deque()
        at = 0
        try:
            async with closing(pieces) as pieces:
                async for content in pieces:
                    for start in range(0, len(content), PIECE):
                        piece = content[start : start + PIECE]
                        question = pack_bytes(handle) + struct.pack(">Q", at) + pack_bytes(piece)
                        under_way.append((at, self._send(Packet.WRITE, question)))
                        at += len(piece)
                        if len(under_way) >= AT_ONCE:
                            require_ok(await under_way.popleft()[1])
                    await self._flush()
            while under_way:
                require_ok(await under_way.popleft()[1])
        finally:
            await self._drain(under_way)
            await self._close(handle)

    async def make_folder(self, path: str) -> None:
        """Create a directory, which must not exist."""
        await self._ask(Packet.MKDIR, pack_text(path) + struct.pack(">I", 0))

    async def remove(self, path: str) -> None:
        """Remove a file."""
        await self._ask(Packet.REMOVE, pack_text(path))

    async def rename(self, old: str, new: str) -> None:
        """Rename a file, replacing an existing one."""
        if POSIX_RENAME in self._extensions:
            await self._ask(Packet.EXTENDED, pack_text(POSIX_RENAME) + pack_text(old) + pack_text(new))
            return
        with contextlib.suppress(SftpRefused):
            await self.remove(new)
        await self._ask(Packet.RENAME, pack_text(old) + pack_text(new))

    async def _open(self, path: str, how: int) -> bytes:
        question = pack_text(path) + struct.pack(">II", how, 0)
        return PacketBody(await self._ask(Packet.OPEN, question, wanted=Packet.HANDLE)).read_bytes()

    async def _close(self, handle: bytes) -> None:
        with contextlib.suppress(SftpLost, SftpRefused):
            await self._ask(Packet.CLOSE, pack_bytes(handle))

    async def _ask(self, kind: Packet, question: bytes, wanted: Packet = Packet.STATUS) -> bytes:
        answer = self._send(kind, question)
        await self._flush()
        answered, body = await answer
        if answered == Packet.STATUS:
            require_ok((answered, body))
        if answered != wanted:
            raise SftpLost("the server gave an answer that nobody asked for")
        return body

    def _send(self, kind: Packet, question: bytes) -> asyncio.Future[tuple[int, bytes]]:
        number = next(self._numbers) & 0xFFFFFFFF
        answer = asyncio.get_running_loop().create_future()
        if self._tasks and self._tasks[0].done():
            answer.set_exception(SftpLost(self._describe_end()))
            return answer
        self._waiting[number] = answer
        self._put(kind, struct.pack(">I", number) + question)
        return answer

    def _put(self, kind: Packet, body: bytes) -> None:
        if self._process.stdin and not self._process.stdin.is_closing():
            self._process.stdin.write(struct.pack(">IB", len(body) + 1, kind) + body)

    async def _flush(self) -> None:
        with contextlib.suppress(ConnectionError):  # the reading task reports why
            if self._process.stdin:
                await self._process.stdin.drain()

    async def _drain(self, under_way: deque[tuple[int, asyncio.Future[tuple[int, bytes]]]]) -> None:
        """Wait for answers that are no longer needed."""
        await self._flush()
        answers = [answer for _, answer in under_way]
        under_way.clear()
        await asyncio.gather(*answers, return_exceptions=True)

    async def _greet(self) -> None:
        self._tasks.append(asyncio.create_task(self._hear_words()))
        self._put(Packet.INIT, struct.pack(">I", VERSION))
        await self._flush()
        try:
            kind, body = await self._read_packet()
        except (asyncio.IncompleteReadError, SftpLost) as error:
            await self._tasks[0]
            raise SftpLost(self._describe_end()) from error
        greeting = PacketBody(body)
        if kind != Packet.VERSION or greeting.read_number() < VERSION:
            raise SftpLost("the server doesn't speak SFTP")
        while greeting.rest:
            name = greeting.read_text()
            self._extensions[name] = greeting.read_text()
        self._tasks.insert(0, asyncio.create_task(self._hear()))

    async def _hear(self) -> None:
        try:
            while True:
                kind, body = await self._read_packet()
                answer = self._waiting.pop(struct.unpack(">I", body[:4])[0], None)
                if answer and not answer.done():
                    answer.set_result((kind, body[4:]))
        except (asyncio.IncompleteReadError, SftpLost, struct.error, OSError):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2):
                    await self._process.wait()
            waiting, self._waiting = self._waiting, {}
            for answer in waiting.values():
                if not answer.done():
                    answer.set_exception(SftpLost(self._describe_end()))

    async def _read_packet(self) -> tuple[int, bytes]:
        if self._process.stdout is None:
            raise SftpLost("the process has no output")
        length, kind = struct.unpack(">IB", await self._process.stdout.readexactly(5))
        if not 1 <= length <= LONGEST_PACKET:
            raise SftpLost("the server doesn't speak SFTP")
        return kind, await self._process.stdout.readexactly(length - 1)

    async def _hear_words(self) -> None:
        while self._process.stderr and (words := await self._process.stderr.read(4096)):
            self._words = (self._words + words)[-LONGEST_WORDS:]

    def _describe_end(self) -> str:
        return self._words.decode("utf-8", "replace").strip() or "the connection ended"

    async def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._process.communicate()
        for answer in self._waiting.values():
            answer.cancel()
