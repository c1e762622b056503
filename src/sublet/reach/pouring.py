"""A stream from here to a program on another machine: read as it goes, and kept nowhere on the way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol, runtime_checkable

from sublet.kernel.streams import closing
from sublet.reach.port import Command, Outcome, Reach, as_is

PIECE = 1 << 22  # bytes that travel in one exec where no stream can be had
WhereTo = Callable[[int], tuple[str, ...]]  # the words of a program that writes what it reads from a byte on


@runtime_checkable
class Pours(Protocol):
    """A reach that has a channel for a stream."""

    async def pour(self, argv: tuple[str, ...], pieces: AsyncIterator[bytes]) -> Outcome | None:
        """Run a program that reads the stream; None: there is no such channel now, and nothing was read."""
        ...


async def pour(
    reach: Reach, to_write: WhereTo, offset: int, pieces: AsyncIterator[bytes], *, whole: bool = False
) -> Outcome:
    """Bring a stream to a program there; where there is no channel for it, in parts, each from where the last ended.

    `whole`: its program can't go on in the middle, so that the stream travels in one exec, which must hold it.
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
