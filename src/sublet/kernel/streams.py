"""Reads streams so that a reader that stops early releases the file or connection behind them at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

Item = TypeVar("Item")


@asynccontextmanager
async def closing(stream: AsyncIterator[Item]) -> AsyncIterator[AsyncIterator[Item]]:
    """Close a stream when its reader is done with it, also after an error.

    A generator that is merely dropped is closed later by the event loop, at the same time as the generator that it
    reads from, so that both would close the same connection at once.
    """
    try:
        yield stream
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


async def read_up_to(most: int, stream: AsyncIterator[bytes]) -> bytes:
    """Read a whole stream; stop soon after `most` bytes, so that a longer result shows that the stream is too long."""
    content = bytearray()
    async with closing(stream):
        async for piece in stream:
            content += piece
            if len(content) > most:
                break
    return bytes(content)
