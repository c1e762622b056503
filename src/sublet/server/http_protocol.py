"""uvicorn's HTTP protocol with time limits: a request has to arrive, and an answer has to be read, in time."""

from __future__ import annotations

from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from sublet.api.problems import raw_response
from sublet.kernel.errors import RequestTooSlow
from sublet.server.connections import Connections, Seat
from sublet.server.joined_writes import JoinedWrites

LEAST_RATE = 500  # bytes per second at which a request's body has to arrive, after the first seconds
UNREAD = 300.0  # seconds for which an answer may stay unread


class TimedProtocol(H11Protocol):
    """One connection without timers of its own: the server calls `close_if_overdue` for all of them once a second."""

    patience = 20.0  # seconds for a request's head, and for a small body

    def __init__(self, *words: Any, connections: Connections | None = None, seat: Seat | None = None, **more: Any):
        """Prepare for a connection; without a seat it isn't counted."""
        super().__init__(*words, **more)
        self._counted, self._seat = connections, seat
        self._since: float | None = None  # when the current request began to arrive; None between requests
        self._arrived = 0  # bytes of its body
        self._stalled: float | None = None  # since when the client hasn't read the answer

    def connection_made(self, transport: Any) -> None:
        """Start the time limit of the first request."""
        self._since = self.loop.time()
        self._joined = JoinedWrites(transport, self.loop)
        super().connection_made(self._joined)  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        """Receive part of a request; its first byte starts the time limit."""
        if self._since is None:
            self._since = self.loop.time()
        before = self.cycle
        self._arrived += len(data)
        super().data_received(data)
        if self.cycle is not before:
            self._begin_body()
        elif self.cycle is not None and not self.cycle.more_body:
            self._mark(idle=False)

    def _begin_body(self) -> None:
        """Restart the time limit once the head of a request has arrived."""
        self._since, self._arrived = self.loop.time(), 0
        self._mark(idle=self.cycle.more_body)

    def on_response_complete(self) -> None:
        """Restart the time limit if the next request has already arrived, or else mark the connection idle."""
        self._since, self._arrived = None, 0
        before = self.cycle
        super().on_response_complete()
        if self.cycle is not before:
            self._begin_body()
        else:
            self._mark(idle=True)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Hand the connection over to the WebSocket protocol."""
        self._mark(idle=False)
        self._joined.flush()
        self.transport = self._joined.transport
        super().handle_websocket_upgrade(event)

    def pause_writing(self) -> None:
        """Note when the client stopped reading."""
        self._stalled = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Note that the client has read again."""
        self._stalled = None
        super().resume_writing()

    def close_if_overdue(self, now: float, passed: float) -> bool:
        """Close the connection if the client takes too long; `passed` is the time since the last call."""
        if self._stalled is not None and now - self._stalled > UNREAD:
            self.transport.abort()
            return True
        if self._since is None or self._is_answering():
            return False
        if self.flow.read_paused:  # we make the client wait, so that time doesn't count
            self._since += passed
        if now - self._since <= self.patience + self._earn_time():
            return False
        self._give_up()
        return True

    def _is_answering(self) -> bool:
        """Whether a complete request has arrived and is being answered."""
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body

    def _earn_time(self) -> float:
        """Return how many seconds the received part of a body adds to its time limit; a head adds none."""
        is_body = self.cycle is not None and not self.cycle.response_complete
        return self._arrived / LEAST_RATE if is_body else 0.0

    def _give_up(self) -> None:
        """Close the connection, answering that the request was too slow if one has begun and isn't answered yet."""
        waits = self.cycle is None or self.cycle.response_complete  # for the head of a request
        if self.conn.trailing_data[0] if waits else not self.cycle.response_started:
            self.transport.write(raw_response(RequestTooSlow()))
        self.transport.close()

    def _mark(self, *, idle: bool) -> None:
        if self._counted is None or self._seat is None:
            return
        if idle:
            self._counted.mark_idle(self._seat)
        else:
            self._counted.mark_busy(self._seat)
