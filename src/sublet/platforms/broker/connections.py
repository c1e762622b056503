"""Calls to one host over kept HTTP/1.1 connections, with h11 directly on asyncio.

A request is passed on to many brokers at once, and each answer is small: a whole HTTP client would cost the event loop
more than the answer does. Where a proxy is needed, and for files, `wire.py` uses one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import h11

from sublet.kernel.tls import trust_machine

PORTS = {"http": 80, "https": 443}
PIECE = 1 << 16  # bytes that are read at once
IDLE = 5.0  # seconds for which an unused connection is kept
MOST_INFORMATION = 20  # interim answers (1xx) before the final one


class AnswerTooLong(Exception):
    """An answer has more bytes than were asked for at most."""


@dataclass(slots=True)
class Connection:
    """One connection, with h11's state of it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    state: h11.Connection = field(default_factory=lambda: h11.Connection(h11.CLIENT))
    idle_since: float = 0.0

    def can_be_used(self, now: float) -> bool:
        """Whether the other side hasn't closed the connection, and isn't about to."""
        return now - self.idle_since < IDLE and not (self.reader.at_eof() or self.writer.is_closing())

    async def exchange(self, request: h11.Request, content: bytes, most: int) -> tuple[h11.Response, bytes]:
        """Send a request and read the answer; raise AnswerTooLong if it has more bytes than `most`."""
        send = self.state.send
        parts = [send(request), send(h11.Data(data=content)) if content else b"", send(h11.EndOfMessage())]
        self.writer.write(b"".join(part for part in parts if part))
        response: h11.Response | None = None
        body, information = bytearray(), 0
        while True:
            event = self.state.next_event()
            if event is h11.NEED_DATA:
                self.state.receive_data(await self.reader.read(PIECE))
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > most:
                    raise AnswerTooLong
            elif isinstance(event, h11.Response):
                response = event
            elif isinstance(event, h11.InformationalResponse) and information < MOST_INFORMATION:
                information += 1
            elif isinstance(event, h11.EndOfMessage) and response is not None:
                return response, bytes(body)
            else:
                raise h11.RemoteProtocolError("it hung up before it answered")

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError, RuntimeError):  # also when the event loop has ended
            self.writer.close()


class BrokerConnections:
    """The connections to one host: as many as are needed at once, up to a limit."""

    def __init__(self, url: str, most: int) -> None:
        """Set up without connecting; `url` is http or https."""
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or PORTS[parts.scheme]
        self._is_secure = parts.scheme == "https"
        self._name = parts.netloc.encode("idna" if not parts.netloc.isascii() else "ascii")
        self._turns = asyncio.Semaphore(most)
        self._idle: list[Connection] = []  # the most recently used one is at the end

    async def call(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes, most: int
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Make one call; return the status, the headers by lower-case name, and the body."""
        lines = [(b"host", self._name), *((name.encode(), value.encode("ascii")) for name, value in headers.items())]
        if content or method == "POST":
            lines.append((b"content-length", b"%d" % len(content)))
        request = h11.Request(method=method, target=target, headers=lines)
        async with self._turns:
            connection = self._take_idle() or await self._connect()
            try:
                response, body = await connection.exchange(request, content, most)
            except BaseException:
                connection.close()
                raise
            self._keep(connection)
        return response.status_code, _join_headers(response), body

    def close(self) -> None:
        """Close all unused connections."""
        while self._idle:
            self._idle.pop().close()

    def _take_idle(self) -> Connection | None:
        """Return the most recently used connection that is still usable, and close those that aren't."""
        now = monotonic()
        while self._idle and not self._idle[0].can_be_used(now):
            self._idle.pop(0).close()
        while self._idle:
            connection = self._idle.pop()
            if connection.can_be_used(now):
                return connection
            connection.close()
        return None

    async def _connect(self) -> Connection:
        if not self._is_secure:
            return Connection(*await asyncio.open_connection(self._host, self._port))
        secured = await asyncio.open_connection(self._host, self._port, ssl=trust_machine(), server_hostname=self._host)
        return Connection(*secured)

    def _keep(self, connection: Connection) -> None:
        try:
            connection.state.start_next_cycle()
        except h11.LocalProtocolError:  # one of both sides wants to close the connection
            connection.close()
            return
        if connection.state.trailing_data[0]:  # more than an answer: whatever follows can't be trusted
            connection.close()
            return
        connection.idle_since = monotonic()
        self._idle.append(connection)


def _join_headers(response: h11.Response) -> Mapping[str, str]:
    joined: dict[str, str] = {}
    for name, value in response.headers:
        key, text = name.decode("ascii"), value.decode("latin-1")
        joined[key] = f"{joined[key]}, {text}" if key in joined else text
    return joined


def needs_proxy(url: str) -> bool:
    """Whether the environment names a proxy for this address."""
    parts = urlsplit(url)
    proxies = getproxies()
    return bool(proxies.get(parts.scheme) or proxies.get("all")) and not proxy_bypass(parts.hostname or "")
