"""The channel to the agent: opened, kept open, and reopened when it breaks; frames take turns on it."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import secrets
import time
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

from sublet.annexes.split.frames import MARK, decode, encode, lengths, pieces
from sublet.annexes.split.travel import AGENT, program

BOOT = "import sys;i=sys.stdin.buffer;exec(compile(i.read(int(i.readline())),'agent','exec'))"
HANDSHAKE = 30.0  # seconds that a login shell may take to start the agent
LIMIT = 1 << 22
Frames = Generator[tuple[dict[str, Any], bytes], None, None]
Hears = Callable[[dict[str, Any], bytes], Awaitable[None]]


class AgentChannel:
    """Frames to and from the agent."""

    def __init__(self, words: tuple[str, ...], errors: Path, silent: float) -> None:
        """`words` start a Python at the far end, which reads its program; their stderr goes to the file `errors`."""
        self._words, self._errors, self._silent = words, errors, silent
        self._turns: deque[Frames] = deque()
        self._something = asyncio.Event()
        self._heard = 0.0

    def say(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Send one frame, or as many as the body needs."""
        self.turn(pieces(header, io.BytesIO(body)) if body else _one(header))

    def turn(self, frames: Frames) -> None:
        """Queue frames that are created when their turn comes, so that a large sandbox doesn't delay a small one."""
        self._turns.append(frames)
        self._something.set()

    async def open(self, settings: dict[str, Any], begin: Callable[[], None], hear: Hears) -> None:
        """Exchange frames until the channel breaks; raise OSError, TimeoutError or ValueError with the reason."""
        nonce = secrets.token_hex(8)
        text = program(AGENT, {**settings, "nonce": nonce})
        process = await self._start()
        try:
            async with asyncio.timeout(HANDSHAKE):
                _stdin(process).write(f"{len(text)}\n".encode() + text)
                await _stdin(process).drain()
                await self._skip_to_mark(_stdout(process), nonce)
            self._heard = time.monotonic()
            begin()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._write(_stdin(process)))
                group.create_task(self._read(_stdout(process), hear))
                group.create_task(self._beat(nonce))
        except BaseExceptionGroup as errors:
            raise ConnectionError(str(errors.exceptions[0]) or "the channel ended") from errors
        finally:
            while self._turns:
                await asyncio.to_thread(self._turns.popleft().close)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _start(self) -> Process:
        errors = os.open(self._errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            return await asyncio.create_subprocess_exec(
                *self._words, stdin=PIPE, stdout=PIPE, stderr=errors, limit=LIMIT, start_new_session=True
            )
        finally:
            os.close(errors)

    async def _skip_to_mark(self, source: asyncio.StreamReader, nonce: str) -> None:
        """Skip the output of a login shell, up to the agent's first line."""
        while (line := await source.readline()) != MARK + nonce.encode() + b"\n":
            if not line:
                complaints = (await asyncio.to_thread(self._errors.read_text, errors="replace")).strip().splitlines()
                raise ConnectionError(
                    complaints[-1][:300] if complaints else "the channel ended before the agent began"
                )

    async def _write(self, target: asyncio.StreamWriter) -> None:
        while True:
            if not self._turns:
                self._something.clear()
                await self._something.wait()
                continue
            turn = self._turns.popleft()
            frame = await asyncio.to_thread(next, turn, None)
            if frame is not None:
                target.write(encode(*frame))
                await target.drain()
                self._turns.append(turn)

    async def _read(self, source: asyncio.StreamReader, hear: Hears) -> None:
        while True:
            words, body = lengths(await source.readexactly(8))
            header = decode(await source.readexactly(words))
            content = await source.readexactly(body)
            self._heard = time.monotonic()
            await hear(header, content)

    async def _beat(self, nonce: str) -> None:
        """Send heartbeats, and raise ConnectionError when the far side has been silent for too long."""
        count = 0
        while True:
            count += 1
            self.say({"op": "lease", "count": f"{nonce}.{count}"})
            await asyncio.sleep(1)
            if time.monotonic() - self._heard > self._silent:
                raise ConnectionError("the login host has not answered for a while")


def _one(header: dict[str, Any]) -> Frames:
    yield header, b""


def _stdin(process: Process) -> asyncio.StreamWriter:
    if process.stdin is None:
        raise ConnectionError("the channel has no input")
    return process.stdin


def _stdout(process: Process) -> asyncio.StreamReader:
    if process.stdout is None:
        raise ConnectionError("the channel has no output")
    return process.stdout
