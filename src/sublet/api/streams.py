"""Answers that go on: each ends, within seconds, when whoever asked for it may have it no more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from time import monotonic

from fastapi import Request

from sublet.api.people import MOMENT, on_socket, person_of
from sublet.errors import SubletError
from sublet.service.desk import Person

_END = b""


async def while_welcome(request: Request, person: Person, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Pass pieces on until they end, or the asker's token counts no more, or what they may do has changed."""
    welcome = monotonic()
    coming = asyncio.ensure_future(anext(pieces, _END))
    try:
        while True:
            await asyncio.wait({coming}, timeout=max(0.0, welcome + MOMENT - monotonic()))
            if monotonic() - welcome >= MOMENT:
                if not await _still(request, person):
                    return
                welcome = monotonic()
            if coming.done():
                if not (piece := coming.result()):
                    return
                yield piece
                coming = asyncio.ensure_future(anext(pieces, _END))
    finally:
        coming.cancel()


async def _still(request: Request, person: Person) -> bool:
    try:
        return on_socket(request.scope) or await person_of(request) == person
    except SubletError:
        return False
