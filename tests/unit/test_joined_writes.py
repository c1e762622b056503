"""The head of an answer and its body are sent together; long answers are sent as they come."""

from __future__ import annotations

import asyncio

from sublet.server.joined_writes import ENOUGH, JoinedWrites


class Wire:
    """A transport that notes what it is given."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        self.sent.append(data)

    def close(self) -> None:
        self.is_closed = True

    def get_extra_info(self, name: str) -> str:
        return name


def test_what_is_written_in_one_go_is_sent_by_one_call() -> None:
    async def write() -> list[bytes]:
        wire = Wire()
        joined = JoinedWrites(wire, asyncio.get_running_loop())
        joined.write(b"head")
        joined.write(b"")
        joined.write(b"body")
        assert wire.sent == []
        await asyncio.sleep(0)
        joined.write(b"next")
        await asyncio.sleep(0)
        return wire.sent

    assert asyncio.run(write()) == [b"headbody", b"next"]


def test_a_long_answer_is_not_collected() -> None:
    async def write() -> list[bytes]:
        wire = Wire()
        joined = JoinedWrites(wire, asyncio.get_running_loop())
        joined.write(b"head")
        joined.write(b"x" * ENOUGH)
        return list(wire.sent)

    assert asyncio.run(write()) == [b"head" + b"x" * ENOUGH]


def test_closing_sends_the_rest_first() -> None:
    async def write() -> Wire:
        wire = Wire()
        joined = JoinedWrites(wire, asyncio.get_running_loop())
        joined.write(b"last words")
        joined.close()
        await asyncio.sleep(0)
        return wire

    wire = asyncio.run(write())
    assert wire.sent == [b"last words"]
    assert wire.is_closed


def test_all_else_is_the_transports_own() -> None:
    async def ask() -> str:
        return str(JoinedWrites(Wire(), asyncio.get_running_loop()).get_extra_info("peername"))

    assert asyncio.run(ask()) == "peername"
