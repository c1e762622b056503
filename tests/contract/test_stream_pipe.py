"""A stream has a pipe in which more fits than in others, so that this machine and what reads it work side by side."""

from __future__ import annotations

import fcntl
import sys
from collections.abc import AsyncIterator

import pytest

from sublet.reach.channel import Channel

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not hasattr(fcntl, "F_GETPIPE_SZ"), reason="pipes of this system have one size"),
]
MIB = 1 << 20
READER = """
import fcntl, sys
print("ready", flush=True)
first = sys.stdin.buffer.read(1)
size, rest = fcntl.fcntl(0, fcntl.F_GETPIPE_SZ), sys.stdin.buffer.read()
print(size, len(first + rest), file=sys.stderr)
"""


async def give(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield bytes(MIB)


async def test_a_stream_arrives_whole_through_a_wide_pipe() -> None:
    channel = await Channel.open([sys.executable, "-c", READER])
    outcome = await channel.pour(give(8))
    await channel.kill()
    assert outcome
    assert (outcome.code, outcome.stderr.split()) == (0, [b"1048576", b"8388608"])


async def test_a_reader_that_gives_up_before_the_stream_begins_is_reported_with_its_words() -> None:
    for _ in range(20):  # whether its pipe is closed here by then is a matter of luck
        channel = await Channel.open(["sh", "-c", "exec <&-; echo ready; echo no room >&2; exit 3"])
        outcome = await channel.pour(give(1))
        await channel.kill()
        assert outcome
        assert (outcome.code, outcome.stderr) == (3, b"no room\n")
