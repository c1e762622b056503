"""Runs programs in existing containers, and connects to ports of pods, through the API server's WebSockets.

Each message begins with the number of its channel: 0 is stdin, 1 stdout, 2 stderr, and 3 how it ended.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlencode

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from sublet.kernel.errors import PlatformUnreachable
from sublet.kernel.streams import closing
from sublet.platforms.kubernetes.api import ApiServer, read_status

STDIN, STDOUT, STDERR, END = 0, 1, 2, 3
PROTOCOL = Subprotocol("v4.channel.k8s.io")
BLOCK = 1 << 17
Take = Callable[[int, bytes], None]  # a channel, and the data that came on it


class PodStreams:
    """Streams to programs and ports in pods."""

    def __init__(self, api: ApiServer) -> None:
        """Set up without connecting."""
        self._api = api

    async def run(
        self, pod: str, container: str, argv: Sequence[str], take: Take, send: AsyncIterator[bytes] | None = None
    ) -> int:
        """Run a program in a container, pass its output to `take`, and return its exit code.

        What `send` yields is its stdin, whose end can't be signalled: the program must know how much to read.
        """
        query = [("container", container), ("stdout", "true"), ("stderr", "true")]
        query += [("stdin", "true")] if send is not None else []
        query += [("command", word) for word in argv]
        async with self._connect(pod, "exec", query) as socket:
            sending = asyncio.create_task(_send_all(socket, send)) if send is not None else None
            try:
                return await self._listen(socket, take)
            finally:
                if sending:
                    sending.cancel()
                    with suppress(asyncio.CancelledError, ConnectionClosed):
                        await sending

    async def _listen(self, socket: ClientConnection, take: Take) -> int:
        code, words = None, ""
        try:
            async for message in socket:
                content = message.encode() if isinstance(message, str) else message
                if content[:1] == bytes([END]):
                    code, words = read_exit(content[1:]), read_status(content[1:])[0]
                elif len(content) > 1:
                    take(content[0], content[1:])
        except ConnectionClosed:
            pass
        if code is None:
            raise PlatformUnreachable(platform=self._api.platform, why=words or "the connection into its pod was lost")
        return code

    @asynccontextmanager
    async def open_port(self, pod: str, port: int) -> AsyncIterator[ClientConnection]:
        """Connect to a port of a pod's loopback: channel 0 carries the data, channel 1 errors."""
        async with self._connect(pod, "portforward", [("ports", str(port))]) as socket:
            yield socket

    @asynccontextmanager
    async def _connect(self, pod: str, what: str, query: list[tuple[str, str]]) -> AsyncIterator[ClientConnection]:
        access = self._api.access
        path = self._api.path_of("pods", pod, what)
        try:
            async with connect(
                f"wss{access.server.removeprefix('https')}{path}?{urlencode(query)}",
                ssl=access.tls,
                additional_headers=await self._api.headers(),
                subprotocols=[PROTOCOL],
                compression=None,
                max_size=None,
                proxy=access.proxy or None,
                ping_interval=None,  # the kubelet of some versions doesn't answer pings
            ) as socket:
                yield socket
        except InvalidStatus as error:
            raise self._api.describe_refusal(error.response.status_code, bytes(error.response.body or b"")) from error
        except (WebSocketException, OSError, TimeoutError) as error:
            raise self._api.describe_silence(error) from error


async def _send_all(socket: ClientConnection, send: AsyncIterator[bytes]) -> None:
    async with closing(send) as send:
        async for block in send:
            for start in range(0, len(block), BLOCK):
                await socket.send(bytes([STDIN]) + block[start : start + BLOCK])


def read_exit(content: bytes) -> int | None:
    """Read the exit code from a program's last message; None if it couldn't be run, perhaps only for now."""
    try:
        status = json.loads(content)
    except ValueError:
        return None
    if status.get("status") == "Success":
        return 0
    causes = (status.get("details") or {}).get("causes") or ()
    codes = [cause.get("message") for cause in causes if cause.get("reason") == "ExitCode"]
    return int(codes[0]) if codes else None
