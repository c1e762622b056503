"""A private ssh-agent: the only place where an account's key lies open, and only while a login is being opened.

It is started by a shell that reads a pipe of ours, so that it ends when this process does, however that ends. Its
socket is in a directory that nobody else can enter; the key comes to it by a pipe, never by a file, an argument or the
environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import secrets
from asyncio.subprocess import DEVNULL, PIPE
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

from sublet.kernel.descriptors import restore_limit
from sublet.kernel.errors import AccountRefused
from sublet.kernel.short_paths import shorten
from sublet.reach.target import private

SOCKET = "agent"
# What `cat` echoes says that the socket is there. When this process lets go of the pipe, the agent is ended.
_WATCH = 'cat; kill "$SSH_AGENT_PID"'
LIFETIME = 120  # seconds after which the agent itself forgets a key
_SECONDS = 10.0


class Agent:
    """One ssh-agent of this process; started when it is first needed, and again if it died."""

    def __init__(self, within: Path) -> None:
        """Choose a directory of its own for its socket, in this one."""
        self._within = within
        self.directory = within / f"agent-{secrets.token_hex(4)}"
        self._process: asyncio.subprocess.Process | None = None
        self._changing = asyncio.Lock()
        self._held: Counter[Path] = Counter()  # public halves of the keys that logins need now

    @property
    def socket(self) -> Path:
        """Where it listens, by a path that is short enough."""
        return shorten(self._within) / self.directory.name / SOCKET

    @contextlib.asynccontextmanager
    async def holding(self, platform: str, key: str, public: Path) -> AsyncIterator[None]:
        """Hold a private key while the block lasts."""
        async with self._changing:
            await self._running(platform)
            code, complaint = await self._add("-q", "-t", str(LIFETIME), "-", given=key)
            if code:
                raise AccountRefused(platform=platform, why=f"the ssh-agent does not take its key: {complaint}")
            self._held[public] += 1
        try:
            yield
        finally:
            async with self._changing:
                self._held[public] -= 1
                if not self._held[public]:
                    await self._add("-q", "-d", str(public))

    async def close(self) -> None:
        """End it, with all that it holds."""
        process, self._process = self._process, None
        if process is not None:
            if process.stdin:
                process.stdin.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_SECONDS):
                    await process.wait()
            if process.returncode is None:
                process.kill()
        with contextlib.suppress(OSError):
            self.socket.unlink()
        with contextlib.suppress(OSError):
            self.directory.rmdir()

    async def _running(self, platform: str) -> None:
        if self._process is not None and self._process.returncode is None and (await self._add("-l"))[0] != 2:
            return
        await self.close()
        for old in self._within.glob("agent-*"):  # what a process that was killed left; a socket in use keeps its own
            with contextlib.suppress(OSError):
                old.rmdir()
        private(self.directory)
        words = ("ssh-agent", "-t", str(LIFETIME), "-a", str(self.socket), "sh", "-c", _WATCH)
        no_core = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, no_core[1]))  # a picture of our memory would have the key in it
        try:
            self._process = await asyncio.create_subprocess_exec(
                *words, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=_environment(), start_new_session=True
            )
            restore_limit(self._process.pid)
        except OSError as error:
            raise AccountRefused(platform=platform, why=f"ssh-agent can't be started: {error.strerror}") from error
        if not await self._answers():
            await self.close()
            raise AccountRefused(platform=platform, why="ssh-agent does not start")

    async def _answers(self) -> bool:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return False
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(_SECONDS):
                process.stdin.write(b"\n")
                await process.stdin.drain()
                return await process.stdout.readline() == b"\n"
        return False

    async def _add(self, *words: str, given: str = "") -> tuple[int, str]:
        """Run ssh-add on it: its exit code, and what it said."""
        process = await asyncio.create_subprocess_exec(
            "ssh-add",
            *words,
            stdin=PIPE,
            stdout=PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env=_environment() | {"SSH_AUTH_SOCK": str(self.socket)},
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(_SECONDS):
                answer, _ = await process.communicate(given.encode())
        except TimeoutError:
            return 2, "it hangs"
        finally:
            if process.returncode is None:
                process.kill()
                await asyncio.shield(process.wait())
        return process.returncode or 0, answer.decode("utf-8", "replace").strip()


def _environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"}
