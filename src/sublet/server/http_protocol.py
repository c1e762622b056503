"""HTTP as uvicorn speaks it, with an end to everyone's patience: a request has to arrive, and an answer to be read."""

from __future__ import annotations

from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from sublet.api.problems import raw_response
from sublet.kernel.errors import RequestTooSlow
from sublet.server.connections import Connections, Seat
from sublet.server.joined_writes import JoinedWrites

LEAST_RATE = 500  # bytes a second that a request has to come with, after its first seconds
UNREAD = 300.0  # seconds for which an answer may wait without anything of it being read


class TimedProtocol(H11Protocol):
    """One connection. Nothing is timed here: the server looks at all of them once a second, by `close_if_overdue`."""

    patience = 20.0  # seconds for the head of a request, and for its body where that is small

    def __init__(self, *words: Any, connections: Connections | None = None, seat: Seat | None = None, **more: Any):
        """Not connected yet; without a seat it is not counted."""
        super().__init__(*words, **more)
        self._counted, self._seat = connections, seat
        self._since: float | None = None  # when the request began to come; None between two
        self._arrived = 0  # bytes of its body
        self._stalled: float | None = None  # since when nothing of the answer was read

    def connection_made(self, transport: Any) -> None:
        """The first request is due from now on."""
        self._since = self.loop.time()
        self._joined = JoinedWrites(transport, self.loop)
        super().connection_made(self._joined)  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        """Part of a request; its first byte starts the clock."""
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
        """The head of a request has come; maybe all of it."""
        self._since, self._arrived = self.loop.time(), 0
        self._mark(idle=self.cycle.more_body)

    def on_response_complete(self) -> None:
        """The next request may already have come."""
        self._since, self._arrived = None, 0
        before = self.cycle
        super().on_response_complete()
        if self.cycle is not before:
            self._begin_body()
        else:
            self._mark(idle=True)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """From here on another protocol has it."""
        self._mark(idle=False)
        self._joined.flush()
        self.transport = self._joined.transport
        super().handle_websocket_upgrade(event)

    def pause_writing(self) -> None:
        """The other side doesn't read."""
        self._stalled = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """It has read something."""
        self._stalled = None
        super().resume_writing()

    def close_if_overdue(self, now: float, passed: float) -> bool:
        """Close it if the other side takes too long; `passed` is the time since the last look."""
        if self._stalled is not None and now - self._stalled > UNREAD:
            self.transport.abort()
            return True
        if self._since is None or self._is_answering():
            return False
        if self.flow.read_paused:  # it is we who make it wait
            self._since += passed
        if now - self._since <= self.patience + self._earn_time():
            return False
        self._give_up()
        return True

    def _is_answering(self) -> bool:
        """Whether a whole request has come."""
        return self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body

    def _earn_time(self) -> float:
        """Seconds that a body has earned by what has come of it; a head earns none."""
        is_body = self.cycle is not None and not self.cycle.response_complete
        return self._arrived / LEAST_RATE if is_body else 0.0

    def _give_up(self) -> None:
        """Say so, if it has begun to ask and has no answer yet, and close it."""
        waits = self.cycle is None or self.cycle.response_complete  # for a head
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
