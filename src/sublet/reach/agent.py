"""A private ssh-agent that holds an account's decrypted key while a login is being opened.

A shell that reads a pipe from this process starts the agent, so the agent ends when this process ends, even if it is
killed. The agent's socket is in a directory that only this user can enter. The key reaches the agent through a pipe,
never through a file, an argument or the environment.
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
# `cat` echoes a line once the socket exists. When this process closes the pipe, `cat` ends and the agent is killed.
_WATCH = 'cat; kill "$SSH_AGENT_PID"'
LIFETIME = 120  # seconds after which the agent itself discards a key
_SECONDS = 10.0


class Agent:
    """An ssh-agent of this process, started when first needed and restarted if it died."""

    def __init__(self, within: Path) -> None:
        """Choose a new directory inside `within` for the agent's socket."""
        self._within = within
        self.directory = within / f"agent-{secrets.token_hex(4)}"
        self._process: asyncio.subprocess.Process | None = None
        self._changing = asyncio.Lock()
        self._held: Counter[Path] = Counter()  # public keys in the agent → how many logins use them

    @property
    def socket(self) -> Path:
        """Return the path of the agent's socket, shortened to fit a Unix socket address."""
        return shorten(self._within) / self.directory.name / SOCKET

    @contextlib.asynccontextmanager
    async def holding(self, platform: str, key: str, public: Path) -> AsyncIterator[None]:
        """Keep a private key in the agent while the block runs."""
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
        """Stop the agent and remove its socket."""
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
        for old in self._within.glob("agent-*"):  # left by killed processes; the directory of a live agent isn't empty
            with contextlib.suppress(OSError):
                old.rmdir()
        private(self.directory)
        words = ("ssh-agent", "-t", str(LIFETIME), "-a", str(self.socket), "sh", "-c", _WATCH)
        no_core = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, no_core[1]))  # a core dump would contain the key
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
        """Run ssh-add against the agent; return its exit code and output."""
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
