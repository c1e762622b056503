"""What tests of movers share: something to send, and nobody to tell."""

from __future__ import annotations

from collections.abc import AsyncIterator

from sublet.movers.port import Content


def quiet(done: int, total: int | None) -> None:
    """Tell nobody."""


def content(path: str, body: bytes) -> Content:
    async def read(offset: int) -> AsyncIterator[bytes]:
        for start in range(offset, len(body), 100_000):
            yield body[start : start + 100_000]

    return Content(path, len(body), read)
