"""Reads streams so that whoever stops before the end lets go of the file or connection behind them at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

Item = TypeVar("Item")


@asynccontextmanager
async def closing(stream: AsyncIterator[Item]) -> AsyncIterator[AsyncIterator[Item]]:
    """Close a stream when its reader is done with it, however that ended.

    A generator that is only forgotten is closed by the event loop at some later time, and one that it reads from is
    closed beside it: two that close the same connection at once.
    """
    try:
        yield stream
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


async def read_up_to(most: int, stream: AsyncIterator[bytes]) -> bytes:
    """All of a stream; of one that is longer, a little more than `most` bytes, by which its reader sees it."""
    content = bytearray()
    async with closing(stream):
        async for piece in stream:
            content += piece
            if len(content) > most:
                break
    return bytes(content)
