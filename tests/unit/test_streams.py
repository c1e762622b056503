"""Whoever stops reading a stream before its end lets go of what is behind it at once."""

from __future__ import annotations

import ast
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from sublet.kernel.streams import closing, read_up_to
from tests.source import PACKAGE, parse_source

pytestmark = pytest.mark.anyio


class Source:
    """A stream that knows whether it is open."""

    def __init__(self) -> None:
        """Not read yet."""
        self.is_open = False

    async def read(self) -> AsyncIterator[bytes]:
        """Four bytes at a time, without end."""
        self.is_open = True
        try:
            while True:
                yield b"abcd"
        finally:
            self.is_open = False


async def test_a_stream_is_closed_when_its_reader_fails() -> None:
    source = Source()
    with suppress(ZeroDivisionError):
        async with closing(source.read()) as pieces:
            async for _ in pieces:
                assert source.is_open
                raise ZeroDivisionError
    assert not source.is_open


async def test_a_stream_that_cannot_be_closed_is_read_as_well() -> None:
    class Plain:
        def __init__(self) -> None:
            self.left = [b"a", b"b"]

        def __aiter__(self) -> AsyncIterator[bytes]:
            return self

        async def __anext__(self) -> bytes:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop(0)

    async with closing(Plain()) as pieces:
        assert [piece async for piece in pieces] == [b"a", b"b"]


@pytest.mark.parametrize(("most", "length"), [(3, 4), (4, 8), (7, 8)])
async def test_no_more_is_read_than_shows_that_it_is_too_long(most: int, length: int) -> None:
    source = Source()
    assert len(await read_up_to(most, source.read())) == length
    assert not source.is_open


def test_streams_are_closed_by_whoever_reads_them() -> None:
    """A generator that is made where it is read is closed there; the server closes the bodies of requests itself."""
    careless = []
    for file, tree in parse_source().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.AsyncFor) and isinstance(node.iter, ast.Call):
                call = ast.unparse(node.iter)
                if call != "request.stream()":
                    careless.append(f"{file.relative_to(PACKAGE)}:{node.lineno}: {call}")
    assert not careless, "read these with `async with closing(…) as …`"
