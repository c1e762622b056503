"""A proxy between a service and a server that pulls the service's plug at a certain call: before it, or after it."""

from __future__ import annotations

import re
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from tests.threads import serving

PIECE = 1 << 16


@dataclass
class Plug:
    """What leads to a server, and how the service is killed; it is pulled once."""

    server: tuple[str, int]
    kill: Callable[[], None] = lambda: None
    call: str = ""  # what its first line begins with, as a pattern: `POST /hub/api/users/`; empty: nobody is killed
    when: str = "before"  # or `after` the server has answered it
    pulled_at: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def is_it(self, piece: bytes) -> bool:
        """Whether this is the call; if it is, no later one is."""
        with self.lock:
            line = piece.split(b"\r\n", 1)[0].decode("latin-1")
            if not self.call or self.pulled_at or not re.match(self.call, line):
                return False
            self.pulled_at = line
            return True


class Passing(socketserver.BaseRequestHandler):
    """One connection, passed on as it is; a call begins with a piece of its own, as HTTP clients send it."""

    plug: Plug
    is_awaited = False  # the answer to the call at which the plug is pulled

    def handle(self) -> None:
        """Pass on what comes from both sides until one of them ends."""
        with socket.create_connection(self.plug.server) as far:
            back = threading.Thread(target=self._pass_back, args=(far,), daemon=True)
            back.start()
            with suppress(OSError):
                while (piece := self.request.recv(PIECE)) and self._pass_on(far, piece):
                    pass
            with suppress(OSError):
                far.shutdown(socket.SHUT_RDWR)
            back.join()

    def _pass_on(self, far: socket.socket, piece: bytes) -> bool:
        if self.plug.is_it(piece):
            if self.plug.when == "before":
                self.plug.kill()
                return False
            self.is_awaited = True
        far.sendall(piece)
        return True

    def _pass_back(self, far: socket.socket) -> None:
        with suppress(OSError):
            while piece := far.recv(PIECE):
                if self.is_awaited:
                    self.plug.kill()
                    break
                self.request.sendall(piece)
        with suppress(OSError):
            self.request.shutdown(socket.SHUT_RDWR)


class Threads(socketserver.ThreadingTCPServer):
    """One thread for each connection."""

    allow_reuse_address = True
    daemon_threads = True


@contextmanager
def plug_in(address: str) -> Iterator[tuple[Plug, str]]:
    """A plug before a server, and the address to reach it by."""
    place = urlsplit(address)
    plug = Plug((place.hostname or "", place.port or 80))
    with serving(server := Threads(("127.0.0.1", 0), type("Bound", (Passing,), {"plug": plug}))):
        yield plug, f"http://127.0.0.1:{server.server_address[1]}{place.path}"
