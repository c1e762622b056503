"""Streaming answers, each of which ends within seconds after the caller lost the right to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from fastapi import Request

from sublet.api.people import MOMENT, on_socket, person_of, secret_of
from sublet.kernel.errors import SubletError
from sublet.people.model.person import Person

_END = b""
AT_ONCE = 64  # tokens that are looked up at once, so that few threads are woken


@dataclass(eq=False, slots=True)
class Reader:
    """A client that reads a streaming answer."""

    request: Request
    person: Person
    refused: asyncio.Event = field(default_factory=asyncio.Event)  # set when they lose the right to it


class Doorkeeper:
    """Checks every two seconds whether tokens are still valid, once for each token, whatever the number of streams."""

    def __init__(self) -> None:
        """Start without readers."""
        self._readers: dict[str, set[Reader]] = {}  # token → readers
        self._task: asyncio.Task[None] | None = None

    def watch(self, reader: Reader) -> None:
        """Watch one more reader; those on the owner's socket need no token."""
        if on_socket(reader.request.scope):
            return
        self._readers.setdefault(secret_of(reader.request.headers), set()).add(reader)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="readers of streams")

    def leave(self, reader: Reader) -> None:
        """Stop watching a reader whose stream has ended."""
        secret = secret_of(reader.request.headers)
        readers = self._readers.get(secret, set())
        readers.discard(reader)
        if not readers:
            self._readers.pop(secret, None)

    async def _run(self) -> None:
        while self._readers:
            await asyncio.sleep(MOMENT)
            everyone = tuple(self._readers.values())
            for first in range(0, len(everyone), AT_ONCE):
                some = everyone[first : first + AT_ONCE]
                await asyncio.gather(*(_refuse_changed(tuple(readers)) for readers in some))


async def _refuse_changed(readers: tuple[Reader, ...]) -> None:
    """End the streams of readers whose token is no longer valid, or whose rights have changed."""
    person = await _find_person(readers[0].request) if readers else None
    for reader in readers:
        if reader.person != person:
            reader.refused.set()


async def _find_person(request: Request) -> Person | None:
    try:
        return await person_of(request)
    except SubletError:
        return None


async def while_welcome(request: Request, person: Person, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the pieces until they end, the caller's token becomes invalid, or their rights change."""
    keeper: Doorkeeper = request.app.state.doorkeeper
    reader = Reader(request, person)
    refused = asyncio.ensure_future(reader.refused.wait())
    coming = asyncio.ensure_future(anext(pieces, _END))
    keeper.watch(reader)
    try:
        while True:
            await asyncio.wait({coming, refused}, return_when=asyncio.FIRST_COMPLETED)
            if refused.done() or not (piece := coming.result()):
                return
            yield piece
            coming = asyncio.ensure_future(anext(pieces, _END))
    finally:
        keeper.leave(reader)
        coming.cancel()
        refused.cancel()
