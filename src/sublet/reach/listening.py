"""A Unix socket that accepts only processes of the same uid."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_CREDENTIALS = struct.Struct("3i")


@contextlib.asynccontextmanager
async def listening(path: Path, serve: Serve) -> AsyncIterator[None]:
    """Serve each connection while the block runs; connections still open at its end are dropped."""
    serving: set[asyncio.Task[None]] = set()

    async def meet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a server's callback runs in a task
        serving.add(task)
        try:
            if _uid(writer) == os.getuid():
                with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):  # the client has gone away
                    await serve(reader, writer)
        finally:
            serving.discard(task)
            writer.close()

    server = await asyncio.start_unix_server(meet, path)
    os.chmod(path, 0o600)
    try:
        yield
    finally:
        server.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        for task in tuple(serving):
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)


def _uid(writer: asyncio.StreamWriter) -> int:
    asking = writer.get_extra_info("socket")
    _, uid, _ = _CREDENTIALS.unpack(asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    return int(uid)
