"""Ports of pods as local Unix sockets: each connection becomes a port-forward through the API server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from sublet.kernel.errors import SubletError
from sublet.platforms.kubernetes.api import ObjectMissing
from sublet.platforms.kubernetes.streams import PodStreams

DATA = 0
NUMBER = 2  # bytes: each channel begins with the number of its port
BLOCK = 1 << 16
Lead = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class PortForwards:
    """The sockets of the sessions that someone can connect to."""

    def __init__(self, streams: PodStreams) -> None:
        """Start without sockets."""
        self._streams = streams
        self._servers: dict[str, asyncio.Server] = {}

    async def open(self, path: Path, pod: str, port: int) -> None:
        """Open a socket that leads to a port of a pod; only this account can use it."""
        if str(path) in self._servers:
            return
        _remove(path)
        lead = self._lead_to(pod, port)
        mask = os.umask(0o177)
        try:
            self._servers[str(path)] = await asyncio.start_unix_server(lead, path)
        finally:
            os.umask(mask)

    def _lead_to(self, pod: str, port: int) -> Lead:
        async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                async with self._streams.open_port(pod, port) as socket:
                    await _join(socket, reader, writer)
            except (SubletError, ObjectMissing, ConnectionClosed, OSError):
                pass  # the client sees that the connection was closed, and tries again
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()

        return lead

    async def close(self, path: Path) -> None:
        """Close and remove a socket."""
        server = self._servers.pop(str(path), None)
        if server:
            server.close()
        _remove(path)

    async def close_all(self) -> None:
        """Close and remove all sockets."""
        for path in list(self._servers):
            await self.close(Path(path))


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


async def _join(socket: ClientConnection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes in both directions until one side ends."""

    async def send() -> None:
        while block := await reader.read(BLOCK):
            await socket.send(bytes([DATA]) + block)

    async def receive() -> None:
        numbered: set[int] = set()
        async for message in socket:
            content = message.encode() if isinstance(message, str) else message
            channel, rest = content[0], content[1:]
            if channel not in numbered:
                numbered.add(channel)
                rest = rest[NUMBER:]
            if channel != DATA and rest:
                return
            writer.write(rest)
            await writer.drain()

    tasks = [asyncio.create_task(send()), asyncio.create_task(receive())]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
