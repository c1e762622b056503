"""Calls over kept connections: answers in each form that HTTP/1.1 has, and servers that hang up, lie or talk on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import h11
import pytest

from sublet.kernel.errors import PlatformRefused
from sublet.platforms.broker.connections import AnswerTooLong, BrokerConnections, needs_proxy
from sublet.platforms.broker.platform import Broker

pytestmark = pytest.mark.anyio
OK = b"HTTP/1.1 200 OK\r\n"
PLAIN = OK + b"X-One: a\r\nX-One: b\r\nContent-Length: 2\r\n\r\n{}"


class PlayedServer:
    """Answers each request with the next of some bytes; an answer that ends in None hangs up after it."""

    def __init__(self, answers: Sequence[bytes | tuple[bytes, None]]) -> None:
        """In this order."""
        self.answers = list(answers)
        self.heard: list[bytes] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        while self.answers:
            try:
                self.heard.append(await reader.readuntil(b"\r\n\r\n"))
            except asyncio.IncompleteReadError:
                break
            answer = self.answers.pop(0)
            writer.write(answer if isinstance(answer, bytes) else answer[0])
            if not isinstance(answer, bytes):
                break
        writer.close()


@asynccontextmanager
async def connected(*answers: bytes | tuple[bytes, None]) -> AsyncIterator[tuple[BrokerConnections, PlayedServer]]:
    played = PlayedServer(answers)
    async with await asyncio.start_server(played.serve, "127.0.0.1", 0) as server:
        connections = BrokerConnections(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", 2)
        yield connections, played
        connections.close()


async def call(connections: BrokerConnections, most: int = 1000) -> tuple[int, bytes]:
    status, _, body = await connections.call("GET", "/x", {"accept": "a"}, b"", most)
    return status, body


async def test_one_connection_carries_call_after_call() -> None:
    async with connected(PLAIN, PLAIN, PLAIN) as (connections, played):
        for _ in range(2):
            assert await call(connections) == (200, b"{}")
        assert (await connections.call("GET", "/x?y=1", {}, b"", 10))[1]["x-one"] == "a, b"
        assert played.connections == 1
        assert played.heard[2].startswith(b"GET /x?y=1 HTTP/1.1\r\n")


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\n" + PLAIN,
        (OK + b"\r\n{}", None),  # until it hangs up
        (OK + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}", None),
    ],
)
async def test_an_answer_is_read_in_whichever_form_it_comes(answer: bytes | tuple[bytes, None]) -> None:
    async with connected(answer, PLAIN) as (connections, _):
        assert await call(connections) == (200, b"{}")
        assert await call(connections) == (200, b"{}")


async def test_a_connection_that_the_other_side_has_closed_is_not_used_again() -> None:
    async with connected((PLAIN, None), PLAIN) as (connections, played):
        assert await call(connections) == (200, b"{}")
        async with asyncio.timeout(20):
            while played.connections < 2:  # the news that it hung up may take a moment
                try:
                    await call(connections)
                except (h11.RemoteProtocolError, ConnectionError):
                    continue
        assert played.connections == 2


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", b"nonsense\r\n\r\n"])
async def test_half_an_answer_and_no_http_are_faults_of_the_other_side(answer: bytes) -> None:
    async with connected((answer, None)) as (connections, _):
        with pytest.raises(h11.RemoteProtocolError):
            await call(connections)


async def test_an_answer_that_is_too_long_is_not_read_to_its_end() -> None:
    async with connected(PLAIN, PLAIN) as (connections, played):
        with pytest.raises(AnswerTooLong):
            await call(connections, most=1)
        assert await call(connections) == (200, b"{}")
        assert played.connections == 2


async def test_what_follows_an_answer_unasked_is_no_answer_to_the_next_call() -> None:
    async with connected(PLAIN + OK + b"Content-Length: 4\r\n\r\nevil", PLAIN) as (connections, _):
        assert await call(connections) == (200, b"{}")
        assert await call(connections) == (200, b"{}")


async def test_a_header_cannot_bring_another_line_along() -> None:
    async with connected(PLAIN) as (connections, _):
        with pytest.raises(h11.LocalProtocolError):
            await connections.call("GET", "/x", {"accept": "a\r\nx: y"}, b"", 10)


def test_a_proxy_of_the_environment_is_needed_but_for_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert not needs_proxy("https://a.example")
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "b.example")
    assert needs_proxy("https://a.example/x")
    assert not needs_proxy("https://b.example")
    assert not needs_proxy("http://a.example")


async def test_a_token_file_is_used_only_if_nobody_else_can_read_it(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("radium\n")
    broker = Broker(name="cam", url="https://127.0.0.1:1", token_file=file)
    file.chmod(0o644)
    with pytest.raises(PlatformRefused, match=f"others can read {file}"):
        await broker.open(tmp_path)
    file.chmod(0o600)
    await broker.open(tmp_path)
    await broker.close()
