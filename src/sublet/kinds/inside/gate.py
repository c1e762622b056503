"""A gate that asks for a secret, and a proxy behind it, with a minimal HTTP implementation. Travels with the job.

A visitor with `?token=SECRET` gets a cookie for the session's path, and is redirected without the token;
`Authorization` works too. Everybody else is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

HEAD_AT_MOST = 64 * 1024
PATIENCE = 20.0  # seconds for a request's head to arrive
AWAY = "This session is private: open it with the address that Sublet shows, which carries its secret.\n"
HOP = {"connection", "keep-alive", "proxy-connection"}


@dataclass(frozen=True)
class Head:
    """The head of an HTTP request, and the bytes read beyond it."""

    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    rest: bytes

    def header(self, name: str) -> str:
        """Return a header; empty if it is missing."""
        return next((value for key, value in self.headers if key.lower() == name), "")

    @property
    def path(self) -> str:
        """The path without the query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> dict[str, str]:
        """The query parameters."""
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def upgrades(self) -> bool:
        """Whether the request is a WebSocket upgrade."""
        return self.header("upgrade").lower() == "websocket"


def read_head(visitor: socket.socket) -> Head | None:
    """Read a request's head; None if it is malformed."""
    visitor.settimeout(PATIENCE)
    data = b""
    while b"\r\n\r\n" not in data:
        piece = visitor.recv(8192)
        if not piece or len(data) > HEAD_AT_MOST:
            return None
        data += piece
    raw, rest = data.split(b"\r\n\r\n", 1)
    first, *lines = raw.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[1].startswith("/"):
        return None
    headers = tuple((name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines))
    visitor.settimeout(None)
    return Head(words[0], words[1], headers, rest)


class Door:
    """The check of who may enter."""

    def __init__(
        self, secret: str, base_url: str, path: str = "/", *, keeps_path: bool = False, shows: tuple[str, ...] = ()
    ) -> None:
        """Take the secret, the path under which visitors see us, and the page that they are sent to first.

        Requests are passed on without that path, unless the server `keeps_path`; `shows` is a header to add for it.
        """
        self.secret = secret
        self.keeps_path, self.shows = keeps_path, shows
        self.base = base_url.rstrip("/") + "/"
        self.first = self.base + path.lstrip("/")
        self.cookie = "door-" + hashlib.sha256(self.base.encode()).hexdigest()[:12]

    def admits(self, head: Head) -> bool:
        """Whether a request carries the secret; a cookie counts only for pages of the same origin."""
        kind, _, value = head.header("authorization").partition(" ")
        if kind.lower() in ("bearer", "token") and self._is_secret(value):
            return True
        return self._is_secret(head.query.get("token", "")) or (self._has_cookie(head) and self._same_origin(head))

    def _is_secret(self, value: str) -> bool:
        return bool(self.secret) and hmac.compare_digest(value.strip().encode(), self.secret.encode())

    def _has_cookie(self, head: Head) -> bool:
        pairs = (part.strip().partition("=") for part in head.header("cookie").split(";"))
        return any(name == self.cookie and self._is_secret(value) for name, _, value in pairs)

    def _same_origin(self, head: Head) -> bool:
        origin = head.header("origin")
        hosts = {head.header("host"), head.header("x-forwarded-host")}
        return not origin or urlsplit(origin).netloc in hosts

    def welcome(self, head: Head) -> bytes | None:
        """Return a redirect that sets the cookie and drops the token, for a browser with the token in the address."""
        if head.method != "GET" or head.upgrades or "token" not in head.query:
            return None
        query = urlencode([(name, value) for name, value in head.query.items() if name != "token"])
        path = self.first if head.path.rstrip("/") + "/" == self.base else head.path
        cookie = f"{self.cookie}={self.secret}; Path={self.base}; HttpOnly; SameSite=Lax"
        secure = "; Secure" if head.header("x-forwarded-proto") == "https" else ""
        where = path + (f"{'&' if '?' in path else '?'}{query}" if query else "")
        return answer(303, "", ("Location", where), ("Set-Cookie", cookie + secure))

    def inner(self, head: Head) -> str:
        """Return the target for the server behind the gate: without our path, and without the secret."""
        is_below = head.path.startswith(self.base) and not self.keeps_path
        path = "/" + head.path[len(self.base) :] if is_below else head.path
        query = urlencode([(name, value) for name, value in head.query.items() if name != "token"])
        if "token" not in head.query:
            query = urlsplit(head.target).query
        return path + (f"?{query}" if query else "")


REASONS = {200: "OK", 303: "See Other", 400: "Bad Request", 403: "Forbidden", 404: "Not Found", 502: "Bad Gateway"}


def answer(status: int, body: str, *headers: tuple[str, str], type: str = "text/plain") -> bytes:
    """Format a complete HTTP response with text."""
    return answer_bytes(status, body.encode(), f"{type}; charset=utf-8", ("Cache-Control", "no-store"), *headers)


def answer_bytes(status: int, data: bytes, type: str, *headers: tuple[str, str]) -> bytes:
    """Format a complete HTTP response."""
    always = [("Content-Type", type), ("Content-Length", str(len(data))), ("Connection", "close")]
    always += [("Referrer-Policy", "no-referrer"), ("X-Content-Type-Options", "nosniff")]
    lines = [f"HTTP/1.1 {status} {REASONS[status]}", *(f"{name}: {value}" for name, value in (*always, *headers))]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + data


def serve(port: int, handle: Callable[[socket.socket], None]) -> None:
    """Serve forever, a thread per visitor; on the loopback, unless the platform sets another host."""
    listener = socket.create_server((os.environ.get("SUBLET_HOST", "127.0.0.1"), port), backlog=64)
    while True:
        visitor, _ = listener.accept()
        threading.Thread(target=_handle, args=(visitor, handle), daemon=True).start()


def _handle(visitor: socket.socket, handle: Callable[[socket.socket], None]) -> None:
    with visitor, suppress(OSError):  # a visitor who disconnects is no error
        handle(visitor)


def listens(connect: Callable[[], socket.socket]) -> bool:
    """Whether something accepts connections there."""
    try:
        connect().close()
    except OSError:
        return False
    return True


def forward(visitor: socket.socket, door: Door, connect: Callable[[], socket.socket]) -> None:
    """Pass one request on to the server behind the gate, and its response back."""
    head = read_head(visitor)
    if head is None or not door.admits(head):
        visitor.sendall(answer(400, "Not HTTP.\n") if head is None else answer(403, AWAY))
        return
    if welcome := door.welcome(head):
        visitor.sendall(welcome)
        return
    try:
        server = connect()
    except OSError as why:
        visitor.sendall(answer(502, f"The server in the container doesn't answer: {why}\n"))
        return
    with server:
        server.settimeout(None)
        # One request per connection: a second one would bypass the check.
        ours = [("X-Forwarded-Prefix", door.base.rstrip("/"))]
        ours += [] if head.upgrades else [("Connection", "close")]
        ours += [(door.shows[0], door.shows[1])] if door.shows else []
        kept = [(k, v) for k, v in head.headers if _passes(k, v, head, door)]
        lines = [f"{head.method} {door.inner(head)} HTTP/1.1", *(f"{k}: {v}" for k, v in (*kept, *ours))]
        server.sendall("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + head.rest)
        threading.Thread(target=_pour, args=(visitor, server), daemon=True).start()
        _pour(server, visitor)


def _passes(name: str, value: str, head: Head, door: Door) -> bool:
    if name.lower() == "cookie":
        return door.cookie not in value
    if name.lower() == "authorization":
        return door.secret not in value
    return head.upgrades or name.lower() not in HOP


def _pour(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65536):
            sink.sendall(piece)
    for end, how in ((source, socket.SHUT_RD), (sink, socket.SHUT_WR)):
        with suppress(OSError):
            end.shutdown(how)
