"""The servers of the process, and the TLS listener for pilots, which is open while there are leases."""

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
LAST_WORDS = 3  # seconds that open answers have to end; streams are cut, and clients can resume them
FIRST, LAST = 9718, 9817  # the ports to try when none is set
LOOK = 5.0  # seconds between checks whether the pilots' listener is still needed
TICKS = 10  # ticks of uvicorn between checks for overdue connections: one second


@dataclass(frozen=True)
class Reception:
    """The limits on connections and on the time that a request may take."""

    connections: Connections  # all TCP connections
    patience: float = 20.0  # seconds for a request to arrive
    is_counted: bool = True  # False for the owner's socket


class Server(uvicorn.Server):
    """One of several servers in the process: it leaves signals alone, and accepts its connections itself."""

    def __init__(self, config: uvicorn.Config, reception: Reception) -> None:
        """Prepare the server without starting it."""
        super().__init__(config)
        self.reception = reception
        self._looked = 0.0

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture no signals."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections from these sockets."""
        acceptors = [self._make_acceptor(listener) for listener in sockets or ()]
        self.servers: Sequence[Any] = acceptors  # type: ignore[assignment]  # uvicorn only closes them
        self._looked = asyncio.get_running_loop().time()
        for acceptor in acceptors:
            acceptor.start()
        self.started = True

    async def on_tick(self, counter: int) -> bool:
        """Close connections that take too long, once a second."""
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
    """Build a server for an application."""
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
    """The listener that is open now."""

    address: str
    port: int
    server: Server
    task: asyncio.Task[None]
    stamp: int = 0  # modification time of the certificate in use


class PilotListener:
    """Listens for pilots: opened when a lease is about to be submitted, and closed when there are no leases."""

    def __init__(self, service: Service, reception: Reception) -> None:
        """Prepare the listener without opening it."""
        self._service = service
        self._reception = reception
        self._open: _Open | None = None
        self._turn = asyncio.Lock()

    async def open(self, address: str, port: int, key: Path, certificate: Path) -> int:
        """Listen on this address and port (0: choose a free one), unless it is open already; return the port."""
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
        """Load the certificate again if it was renewed."""
        stamp = certificate.stat().st_mtime_ns
        if stamp != open.stamp and open.server.config.ssl:
            open.server.config.ssl.load_cert_chain(certificate, key)
            open.stamp = stamp

    async def run(self) -> None:
        """Keep the listener open while pilots may call, and closed otherwise, until cancelled."""
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
        """Try to listen; return why it failed, or an empty string. The same failure is logged only once."""
        try:
            await self._service.annexes.pilot_plans.callback()
        except SubletError as error:
            if error.message != before:
                log.warning("pilots.not-listening", why=error.message)
            return error.message
        return ""

    async def close(self) -> None:
        """Stop listening."""
        async with self._turn:
            await self._close()

    async def _close(self) -> None:
        if self._open:
            self._open.server.should_exit = True
            await asyncio.gather(self._open.task, return_exceptions=True)
            log.info("pilots.closed", address=self._open.address, port=self._open.port)
            self._open = None


def _bind_socket(address: str, port: int) -> socket.socket:
    """Return a socket that listens on this port of an address, or on the first free port if it is 0."""
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
