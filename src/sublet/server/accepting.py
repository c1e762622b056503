"""Accepts connections from a listening socket, even when the process runs short of file descriptors."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from sublet.api.problems import raw_response
from sublet.kernel.errors import TooManyConnections
from sublet.kernel.shortage import is_shortage
from sublet.server.connections import Connections, CountedSocket, Seat

log = structlog.get_logger()

AT_ONCE = 64  # connections accepted in a row before other work gets its turn
SOON, LATEST = 0.05, 1.0  # seconds until accepting is retried
GONE = {errno.ECONNABORTED, errno.EPROTO, errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ETIMEDOUT}
MakeProtocol = Callable[[Seat | None], asyncio.Protocol]


@dataclass
class Acceptor:
    """One listening socket; its connections are counted in `connections`, unless it is the owner's socket."""

    listener: socket.socket
    make_protocol: MakeProtocol
    connections: Connections | None
    make_room: Callable[[], bool]  # closes an idle connection, if there is one
    tls: ssl.SSLContext | None = None
    patience: float = 20.0  # seconds for the TLS handshake
    _wait: float = SOON
    _again: asyncio.TimerHandle | None = None
    _connecting: set[asyncio.Task[None]] = field(default_factory=set)

    def start(self) -> None:
        """Start to accept connections."""
        self._again = None
        self.listener.setblocking(False)
        asyncio.get_running_loop().add_reader(self.listener.fileno(), self._accept)

    def close(self) -> None:
        """Stop accepting connections."""
        if self._again:
            self._again.cancel()
        elif self.listener.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self.listener.fileno())

    async def wait_closed(self) -> None:
        """Cancel the connections that are being set up, and wait for them."""
        for task in self._connecting:
            task.cancel()
        await asyncio.gather(*self._connecting, return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            if self.connections is not None and self.connections.is_crowded:
                return  # waiting connections are still there in the next turn of the event loop
            try:
                accepted, address = self.listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                if error.errno not in GONE:
                    self._rest(error)
                    return
                continue
            self._wait = SOON
            self._take(accepted, address[0] if isinstance(address, tuple) else "")

    def _rest(self, error: OSError) -> None:
        """Pause accepting for a moment; resume sooner if an idle connection could be closed."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self.listener.fileno())
        log.warning("connection.not-accepted", why=error.strerror)
        has_room = is_shortage(error) and self.make_room()
        self._again = loop.call_later(SOON if has_room else self._wait, self.start)
        self._wait = min(LATEST, 2 * self._wait)

    def _take(self, accepted: socket.socket, host: str) -> None:
        accepted.setblocking(False)
        connection: socket.socket | None = accepted
        seat = None
        if self.connections is not None:
            connection = counted = CountedSocket.count(accepted, self.connections, host)
            seat = counted.seat if counted else None
        if connection is None:
            self._refuse(accepted)
            return
        task = asyncio.get_running_loop().create_task(self._connect(connection, seat))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, connection: socket.socket, seat: Seat | None) -> None:
        patience = self.patience if self.tls else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self.make_protocol(seat), connection, ssl=self.tls, ssl_handshake_timeout=patience
            )
        except (OSError, TimeoutError) as error:  # the client went away, or doesn't speak TLS
            log.debug("connection.failed", why=str(error))
            connection.close()
        except BaseException:
            connection.close()
            raise

    def _refuse(self, accepted: socket.socket) -> None:
        """Answer that there are too many connections, without waiting for the client to read it."""
        with contextlib.suppress(OSError):
            if self.tls is None:
                accepted.send(raw_response(TooManyConnections()))
                accepted.shutdown(socket.SHUT_WR)
        accepted.close()
