"""A one-off login, for centres that forbid shared connections: it runs batches one after another, then ends.

A person's terminal may hold the login while the service has the batches to run. So the login has a door: a private
socket through which other processes of the same uid send their batches.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import struct
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from sublet.reach.batch import Batch
from sublet.reach.channel import Channel, Cut, NotSent
from sublet.reach.listening import listening
from sublet.reach.port import Command, Outcome, as_is

_LENGTH = struct.Struct(">Q")


class Visit:
    """An unshared connection, which runs one batch at a time until it fails or its holder closes it."""

    def __init__(self, channel: Channel) -> None:
        """Use an open channel."""
        self._channel = channel
        self._turn = asyncio.Lock()
        self._busy = 0
        self._last = time.monotonic()
        self.over = False

    async def exchange(self, batch: Batch, seconds: float) -> list[Outcome]:
        """Run a batch and return its outcomes; after any error, such as Cut or TimeoutError, the visit is over."""
        self._busy += 1
        try:
            async with self._turn:
                if self.over:
                    raise NotSent("the connection is closed")
                try:
                    return await self._channel.exchange(batch, seconds)
                except BaseException:  # including cancellation: the streams are out of sync now
                    self.over = True
                    raise
        finally:
            self._busy -= 1
            self._last = time.monotonic()

    async def quiet(self, seconds: float) -> None:
        """Wait until the visit is over, or until no batch has been run for this many seconds."""
        while not self.over and (self._busy or time.monotonic() - self._last < seconds):  # noqa: ASYNC110 - a timeout
            await asyncio.sleep(min(seconds, 0.5))


@contextlib.asynccontextmanager
async def open_door(visit: Visit, path: Path) -> AsyncIterator[None]:
    """Let other processes of this uid run batches over a visit while the block runs."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _put(writer, await _serve(visit, await _take(reader)))
        await writer.drain()

    async with listening(path, serve):
        yield


async def through_door(path: Path, batch: Batch, seconds: float) -> list[Outcome]:
    """Run a batch over a visit that another process holds; raise the same errors as `Visit.exchange`."""
    try:
        reader, writer = await asyncio.open_unix_connection(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(path)  # left by a process that was killed
        raise NotSent("you are not signed in") from error
    try:
        asked = [{"argv": c.argv, "stdin": _text(c.stdin), "seconds": c.seconds} for c in batch.commands]
        _put(writer, {"seconds": seconds, "commands": asked})
        await writer.drain()
        answer = await _take(reader)
    except (OSError, asyncio.IncompleteReadError) as error:
        raise Cut(False, None, "the person's login has ended") from error
    finally:
        writer.close()
    if "outcomes" in answer:
        return [Outcome(code, _bytes(stdout), _bytes(stderr)) for code, stdout, stderr in answer["outcomes"]]
    if answer["why"] == "late":
        raise TimeoutError
    raise (
        NotSent(answer["words"])
        if answer["why"] == "not sent"
        else Cut(answer["begun"], answer["code"], answer["words"])
    )


async def _serve(visit: Visit, asked: Mapping[str, Any]) -> dict[str, Any]:
    commands = [Command(tuple(c["argv"]), as_is, _bytes(c["stdin"]), c["seconds"]) for c in asked["commands"]]
    try:
        outcomes = await visit.exchange(Batch(commands), asked["seconds"])
    except TimeoutError:
        return {"why": "late"}
    except Cut as cut:
        why = "not sent" if isinstance(cut, NotSent) else "cut"
        return {"why": why, "begun": cut.begun, "code": cut.code, "words": cut.words}
    return {"outcomes": [(o.code, _text(o.stdout), _text(o.stderr)) for o in outcomes]}


def _put(writer: asyncio.StreamWriter, message: Mapping[str, Any]) -> None:
    data = json.dumps(message).encode()
    writer.write(_LENGTH.pack(len(data)) + data)


async def _take(reader: asyncio.StreamReader) -> dict[str, Any]:
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    message: dict[str, Any] = json.loads(await reader.readexactly(length))
    return message


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text)
