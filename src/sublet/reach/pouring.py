"""Streams data from here to a program on another machine, without writing it to a disk on the way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol, runtime_checkable

from sublet.kernel.streams import closing
from sublet.reach.port import Command, Outcome, Reach, as_is

PIECE = 1 << 22  # bytes sent in one exec where streams aren't available
WhereTo = Callable[[int], tuple[str, ...]]  # a command that writes its stdin to a file from this offset on


@runtime_checkable
class Pours(Protocol):
    """A reach that can stream."""

    async def pour(self, argv: tuple[str, ...], pieces: AsyncIterator[bytes]) -> Outcome | None:
        """Run a program that reads the stream; return None if streaming isn't available, with nothing read."""
        ...


async def pour(
    reach: Reach, to_write: WhereTo, offset: int, pieces: AsyncIterator[bytes], *, whole: bool = False
) -> Outcome:
    """Stream to a remote program; where streaming isn't available, run it once for each part of the stream.

    `whole` means that the program can't resume at an offset, so without streaming the entire stream is collected in
    memory and sent in one exec.
    """
    if isinstance(reach, Pours) and (outcome := await reach.pour(to_write(offset), pieces)) is not None:
        return outcome
    outcome, buffer = Outcome(0, b"", b""), bytearray()
    async with closing(pieces) as pieces:
        async for piece in pieces:
            buffer += piece
            if len(buffer) >= PIECE and not whole:
                outcome = await reach.run(Command(to_write(offset), as_is, bytes(buffer)))
                offset += len(buffer)
                buffer.clear()
                if outcome.code:
                    return outcome
    if buffer:
        outcome = await reach.run(Command(to_write(offset), as_is, bytes(buffer), seconds=600))
    return outcome
