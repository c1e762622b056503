"""Reads files over SFTP without storing them here; parallel readers of one address share a connection."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field

from sublet.data.model.links import FileLink
from sublet.movers.port import Interrupted, SourceChanged
from sublet.reach.sftp import SftpClient
from sublet.reach.sftp_packets import RemoteEntry, SftpLost

LINGER = 2.0  # seconds that a connection stays open for the next file
YOUNG = 3.0  # seconds: a newer file may change again within the same second, and keep its time


def find_version(entry: RemoteEntry) -> str:
    """Return the version of a file: its modification time; empty while that is too recent to be reliable."""
    return str(entry.changed) if time.time() - entry.changed > YOUNG else ""


@dataclass
class _SharedConnection:
    """A connection, and how many readers use it."""

    client: SftpClient
    closing: AsyncExitStack
    users: int = 0
    closers: set[asyncio.Task[None]] = field(default_factory=set)


@dataclass
class SharedConnections:
    """The open connections, by address."""

    open: Callable[[str], AbstractAsyncContextManager[SftpClient]]
    _connections: dict[str, _SharedConnection] = field(default_factory=dict)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @contextlib.asynccontextmanager
    async def use(self, location: str) -> AsyncIterator[SftpClient]:
        """Use the connection to this address; it is closed after a short time without readers."""
        async with self._turn:
            connection = self._connections.get(location)
            if connection is None:
                stack = AsyncExitStack()
                connection = _SharedConnection(await stack.enter_async_context(self.open(location)), stack)
                self._connections[location] = connection
            connection.users += 1
        try:
            yield connection.client
        except SftpLost:
            self._forget(location, connection)  # the next reader opens a new one
            raise
        finally:
            connection.users -= 1
            if not connection.users:
                closer = asyncio.create_task(self._close_later(location, connection))
                connection.closers.add(closer)
                closer.add_done_callback(connection.closers.discard)

    async def _close_later(self, location: str, connection: _SharedConnection) -> None:
        try:
            await asyncio.sleep(LINGER if location in self._connections else 0)
        finally:
            if not connection.users:
                self._forget(location, connection)
                await connection.closing.aclose()

    def _forget(self, location: str, connection: _SharedConnection) -> None:
        if self._connections.get(location) is connection:
            del self._connections[location]


async def read_file(client: SftpClient, path: str, link: FileLink, offset: int) -> AsyncIterator[bytes]:
    """Read a file from a byte offset on; raise SourceChanged if it isn't the linked version, before and after."""
    _require_same(await client.find(path), link)
    at = offset
    async with contextlib.aclosing(client.read(path, offset)) as pieces:
        async for piece in pieces:
            at += len(piece)
            if link.size is not None and at > link.size:
                raise SourceChanged(f"it has more than the {link.size} bytes that it had")
            yield piece
    _require_same(await client.find(path), link)
    if at != link.size:
        raise Interrupted(f"the connection ended after {at} of {link.size} bytes")


def _require_same(entry: RemoteEntry, link: FileLink) -> None:
    if entry.size != link.size or (link.version and str(entry.changed) != link.version):
        raise SourceChanged("it changed while it was read")
