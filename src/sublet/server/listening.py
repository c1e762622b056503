"""The servers of a process, and the one that pilots ask: over TLS, while there are leases, always on one port."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
import uvicorn
from starlette.types import ASGIApp

from sublet.annexes.api.pilots import pilots_app
from sublet.kernel.errors import NotListening, SubletError
from sublet.server.accepting import Acceptor
from sublet.server.connections import Connections, Seat
from sublet.server.http_protocol import TimedProtocol
from sublet.service import Service

log = structlog.get_logger()
LAST_WORDS = 3  # seconds that open answers have to end; streams are cut, and can be taken up again
FIRST, LAST = 9718, 9817  # the ports that are tried when one is chosen
LOOK = 5.0  # seconds between two looks whether it is still needed
TICKS = 10  # of uvicorn's, between two looks at connections that take too long: a second


@dataclass(frozen=True)
class Reception:
    """Who is let in, and how long they may take."""

    connections: Connections  # of all that comes by TCP
    patience: float = 20.0  # seconds for a request to arrive
    is_counted: bool = True  # those that come by the owner's socket are not


class Server(uvicorn.Server):
    """One of several servers in a process: signals are not its business, and it takes its connections itself."""

    def __init__(self, config: uvicorn.Config, reception: Reception) -> None:
        """Not started yet."""
        super().__init__(config)
        self.reception = reception
        self._looked = 0.0

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Nothing is captured."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections from these sockets."""
        acceptors = [self._make_acceptor(listener) for listener in sockets or ()]
        self.servers: Sequence[Any] = acceptors  # type: ignore[assignment]  # it closes them, and no more
        self._looked = asyncio.get_running_loop().time()
        for acceptor in acceptors:
            acceptor.start()
        self.started = True

    async def on_tick(self, counter: int) -> bool:
        """Every tenth time, close connections that take too long."""
        if counter % TICKS == 0:
            now = asyncio.get_running_loop().time()
            timed = [
                connection for connection in self.server_state.connections if isinstance(connection, TimedProtocol)
            ]
            closed = sum(protocol.close_if_overdue(now, now - self._looked) for protocol in timed)
            if closed:
                log.info("connections.overdue", closed=closed)
            self.reception.connections.report()
            self._looked = now
        return await super().on_tick(counter)

    def _make_acceptor(self, listener: socket.socket) -> Acceptor:
        reception = self.reception
        counted = reception.connections if reception.is_counted else None

        def make_protocol(seat: Seat | None) -> TimedProtocol:
            protocol = TimedProtocol(self.config, self.server_state, {}, connections=counted, seat=seat)
            protocol.patience = reception.patience
            return protocol

        close_one = reception.connections.close_oldest
        return Acceptor(listener, make_protocol, counted, close_one, self.config.ssl, reception.patience)


def make_server(app: ASGIApp, reception: Reception, **more: Any) -> Server:
    """A server for an application."""
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=LAST_WORDS,
        http=TimedProtocol,
        **more,
    )
    return Server(config, reception)


@dataclass
class _Open:
    """What listens now."""

    address: str
    port: int
    server: Server
    task: asyncio.Task[None]
    stamp: int = 0  # when the certificate was made that it uses


class PilotListener:
    """Listens for pilots. It is opened when a lease is about to be sent, and closed when there is none."""

    def __init__(self, service: Service, reception: Reception) -> None:
        """Not yet."""
        self._service = service
        self._reception = reception
        self._open: _Open | None = None
        self._turn = asyncio.Lock()

    async def open(self, address: str, port: int, key: Path, certificate: Path) -> int:
        """Listen on this address and port (0: a free one), if that isn't so already; the port."""
        async with self._turn:
            if self._open and (self._open.address != address or self._open.task.done()):
                await self._close()
            if self._open is None:
                listener = _bind_socket(address, port)
                server = make_server(
                    pilots_app(self._service),
                    self._reception,
                    ssl_keyfile=str(key),
                    ssl_certfile=str(certificate),
                    proxy_headers=False,
                )
                server.config.load()
                task = asyncio.create_task(server.serve([listener]), name="pilots")
                port = listener.getsockname()[1]
                self._open = _Open(address, port, server, task)
                log.info("pilots.listening", address=address, port=port)
            self._take_new(self._open, key, certificate)
            return self._open.port

    def _take_new(self, open: _Open, key: Path, certificate: Path) -> None:
        """Use a certificate that was renewed."""
        stamp = certificate.stat().st_mtime_ns
        if stamp != open.stamp and open.server.config.ssl:
            open.server.config.ssl.load_cert_chain(certificate, key)
            open.stamp = stamp

    async def run(self) -> None:
        """Keep it as it should be, until this is cancelled."""
        trouble = ""
        try:
            while True:
                if not await self._service.annexes.pilots.pilots_may_ask():
                    await self.close()
                else:
                    trouble = await self._try(trouble)
                await asyncio.sleep(LOOK)
        finally:
            await self.close()

    async def _try(self, before: str) -> str:
        """Listen, if that is possible; else why not, said once."""
        try:
            await self._service.annexes.pilot_plans.callback()
        except SubletError as error:
            if error.message != before:
                log.warning("pilots.not-listening", why=error.message)
            return error.message
        return ""

    async def close(self) -> None:
        """Listen no longer."""
        async with self._turn:
            await self._close()

    async def _close(self) -> None:
        if self._open:
            self._open.server.should_exit = True
            await asyncio.gather(self._open.task, return_exceptions=True)
            log.info("pilots.closed", address=self._open.address, port=self._open.port)
            self._open = None


def _bind_socket(address: str, port: int) -> socket.socket:
    """A socket that listens on an address: on this port, or on the first that is free."""
    failure: OSError | None = None
    for number in [port] if port else _ports():
        try:
            return _listening(address, number)
        except OSError as error:
            failure = error
    why = f"it can't listen on {address}, port {port or f'{FIRST} to {LAST}'}: {failure.strerror if failure else ''}"
    raise NotListening(why=why)


def _ports() -> Iterator[int]:
    yield from range(FIRST, LAST + 1)


def _listening(address: str, port: int) -> socket.socket:
    family, kind, protocol, _, place = socket.getaddrinfo(address, port, proto=socket.IPPROTO_TCP)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(2048)
    except OSError:
        listener.close()
        raise
    return listener
