"""A real HTTP receiver on loopback, which keeps what it was sent and answers as it is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.threads import serving


@dataclass(frozen=True)
class Received:
    """One call."""

    path: str
    headers: dict[str, str]  # names in small letters
    body: bytes


@dataclass
class Receiver:
    """What came, and what is answered: the statuses one after the other, the last one for ever."""

    url: str = ""
    statuses: list[int] = field(default_factory=lambda: [200])
    said: bytes = b""
    location: str = ""
    calls: list[Received] = field(default_factory=list)
    came: threading.Condition = field(default_factory=threading.Condition)

    def add(self, call: Received) -> int:
        """Keep a call, and say how it is answered."""
        with self.came:
            self.calls.append(call)
            self.came.notify_all()
            return self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]

    def wait(self, count: int) -> list[Received]:
        """Wait until so many calls have come."""
        with self.came:
            assert self.came.wait_for(lambda: len(self.calls) >= count, 30), self.calls
            return list(self.calls)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver, for as long as the block lasts."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = receiver.add(Received(self.path, headers, body))
            self.send_response(status)
            if receiver.location:
                self.send_header("Location", receiver.location)
            self.send_header("Content-Length", str(len(receiver.said)))
            self.end_headers()
            self.wfile.write(receiver.said)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_port}/told"
    with serving(server):
        yield receiver
