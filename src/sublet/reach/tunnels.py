"""Tunnels through a shared login to servers behind it, each with a Unix socket of this user.

The process that holds the login open carries the tunnels, so they last as long as the login; after the next login they
are opened again. The servers themselves must control access, since other users there can reach the same ports.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import time
from dataclasses import dataclass, field
from pathlib import Path

from sublet.kernel.errors import PlatformRefused, SubletError
from sublet.reach.asking import ask_ssh
from sublet.reach.target import Target

HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}")
KNOCK = b"GET / HTTP/1.0\r\n\r\n"  # any answer shows that a server is there
PATIENCE = 10.0  # seconds for a server to answer the first time
AGAIN = 60.0  # seconds until a tunnel that reached no server is tried again


class NoConnection(Exception):
    """There is no shared connection that could carry a tunnel."""


@dataclass
class Tunnels:
    """The tunnels over one shared connection, by name."""

    target: Target
    _made: dict[str, tuple[int, int]] = field(default_factory=dict)  # name → the connection that carries it
    _nowhere: dict[str, tuple[float, SubletError]] = field(default_factory=dict)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def place(self, name: str) -> Path:
        """Return the path of a tunnel's socket."""
        return self.target.socket.parent / f"{hashlib.sha256(name.encode()).hexdigest()[:12]}.way"

    async def open(self, name: str, host: str, port: int) -> Path:
        """Open a tunnel to a server; raise NoConnection, or PlatformRefused if no server answers."""
        if not HOST.fullmatch(host) or not 0 < port < 65536:
            raise PlatformRefused(platform=self.target.platform, why=f"{host!r}:{port} is no address")
        path, carrier = self.place(name), self._carrier()
        if self._made.get(name) == carrier and path.exists():
            return path
        when, error = self._nowhere.get(name, (-AGAIN, None))
        if error and time.monotonic() - when < AGAIN:
            raise error
        async with self._lock:
            try:
                await self._make(name, path, host, port)
            except PlatformRefused as refused:
                self._nowhere[name] = (time.monotonic(), refused)
                raise
            self._made[name] = carrier
        return path

    async def close(self, name: str) -> None:
        """Close a tunnel, whichever process opened it."""
        path = self.place(name)
        self._made.pop(name, None)
        self._nowhere.pop(name, None)
        end = path.with_suffix(".end")
        if end.exists():
            with contextlib.suppress(NoConnection, OSError):
                self._carrier()
                await ask_ssh(self.target.to_tunnel("cancel", path, end.read_text()))
            for file in (path, end):
                file.unlink(missing_ok=True)

    def _carrier(self) -> tuple[int, int]:
        """Return an identifier of the shared connection; a later connection has a different one."""
        try:
            status = self.target.socket.stat()
        except FileNotFoundError:
            raise NoConnection from None
        return status.st_ino, status.st_ctime_ns

    async def _make(self, name: str, path: Path, host: str, port: int) -> None:
        if await _leads_somewhere(path):
            return  # an earlier process of the service opened it, and its login is still open
        await self.close(name)
        far = f"{host}:{port}"
        path.with_suffix(".end").write_text(far)
        code, answer = await ask_ssh(self.target.to_tunnel("forward", path, far), PATIENCE)
        if code:
            path.with_suffix(".end").unlink()
            raise NoConnection(answer.strip())
        if not await _leads_somewhere(path):
            await self.close(name)
            raise PlatformRefused(
                platform=self.target.platform,
                why=f"its login host lets nothing through to {far}",
                hint="The centre may forbid tunnels, or keep its nodes apart: run it as a command or a notebook there.",
            )


async def _leads_somewhere(path: Path) -> bool:
    """Whether a server answers through a tunnel."""
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_unix_connection(path)
            try:
                writer.write(KNOCK)
                return bool(await reader.read(1))
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
