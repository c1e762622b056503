"""One deliberate login, where a centre forbids shared connections: batches go one after another, then it ends.

The person's terminal may hold it while the service has the work: so it has a door, a private socket of this uid's,
through which other processes bring their batches.
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
    """One connection that nothing else shares, open for as long as a person lets it."""

    def __init__(self, channel: Channel) -> None:
        """Use an open channel."""
        self._channel = channel
        self._turn = asyncio.Lock()
        self._busy = 0
        self._last = time.monotonic()
        self.over = False

    async def exchange(self, batch: Batch, seconds: float) -> list[Outcome]:
        """Bring a batch there and its outcomes back; raises Cut and TimeoutError, and then it is over."""
        self._busy += 1
        try:
            async with self._turn:
                if self.over:
                    raise NotSent("the connection is closed")
                try:
                    return await self._channel.exchange(batch, seconds)
                except BaseException:  # whatever came between: the streams are no longer in step
                    self.over = True
                    raise
        finally:
            self._busy -= 1
            self._last = time.monotonic()

    async def quiet(self, seconds: float) -> None:
        """Return when it is over, or when nobody has brought anything for so long."""
        while not self.over and (self._busy or time.monotonic() - self._last < seconds):  # noqa: ASYNC110 - a time, no event
            await asyncio.sleep(min(seconds, 0.5))


@contextlib.asynccontextmanager
async def open_door(visit: Visit, path: Path) -> AsyncIterator[None]:
    """Let other processes of this uid bring their batches to a visit while the block lasts."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _put(writer, await _serve(visit, await _take(reader)))
        await writer.drain()

    async with listening(path, serve):
        yield


async def through_door(path: Path, batch: Batch, seconds: float) -> list[Outcome]:
    """Bring a batch to a visit that another process holds; raises as the visit itself does."""
    try:
        reader, writer = await asyncio.open_unix_connection(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(path)  # who held it was killed
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
