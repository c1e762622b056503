"""A web server for tests of staging that can be told to misbehave, and remembers what it was asked."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

LONGEST = 60  # seconds that a file is held, should a test fail meanwhile


@dataclass
class SourceFile:
    """One file, and how the server treats those who ask for it."""

    content: bytes
    tag: str = ""
    code: int = 200  # of answers to GET
    location: str = ""  # it is elsewhere
    authorization: str = ""  # what must be shown
    cut_at: int | None = None  # the connection ends after so many bytes of the whole file, once for each in `cuts`
    cuts: int = 1
    promised: int | None = None  # the length that is told
    given: int | None = None  # GET has so many bytes alone, and says so, though HEAD told of all
    changes: bytes | None = None  # after the first part was sent, it is this
    knows_ranges: bool = True
    pace: float = 0.0  # seconds between two blocks
    answers_after: float = 0.0  # seconds
    held_at: int | None = None  # after so many bytes nothing more comes until `let_go` is set
    let_go: threading.Event = field(default_factory=threading.Event)
    stalls_at: int | None = None  # after so many bytes nothing more comes, once, until the one who asked gives up

    @property
    def etag(self) -> str:
        """The validator."""
        return self.tag or f'"{hashlib.md5(self.content).hexdigest()}"'


@dataclass
class WebSource:
    """What is served, and what was asked."""

    address: str = ""
    files: dict[str, SourceFile] = field(default_factory=dict)
    asked: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)  # method, path, headers
    sent: int = 0  # bytes of bodies

    def put(self, path: str, content: bytes, **how: Any) -> str:
        """Serve a file; its address."""
        self.files[path] = SourceFile(content, **how)
        return f"http://{self.address}{path}"

    def gets(self, path: str) -> list[dict[str, str]]:
        """The headers of those who wanted a file itself."""
        return [headers for method, asked, headers in self.asked if method == "GET" and asked == path]


class SourceHandler(BaseHTTPRequestHandler):
    """Answers as each file says."""

    source: ClassVar[WebSource]
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, *, with_body: bool) -> None:
        self.source.asked.append((self.command, self.path, dict(self.headers)))
        file = self.source.files.get(self.path)
        if file and file.answers_after:
            time.sleep(file.answers_after)
        if file is None or (file.authorization and self.headers.get("Authorization") != file.authorization):
            self._end(404 if file is None else 401)
        elif file.location:
            self._end(302, file.location)
        elif file.code != 200 and with_body:
            self._end(file.code)
        else:
            self._send(file, with_body)

    def _end(self, code: int, location: str = "") -> None:
        self.send_response(code)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, file: SourceFile, with_body: bool) -> None:
        first, span = 0, self.headers.get("Range", "")
        span = span if file.knows_ranges else ""
        if span and self.headers.get("If-Range", file.etag) == file.etag:
            first = int(span.removeprefix("bytes=").partition("-")[0])
        whole = len(file.content)
        self.send_response(206 if span and first else 200)
        if span and first:
            self.send_header("Content-Range", f"bytes {first}-{whole - 1}/{whole}")
        self.send_header("ETag", file.etag)
        told = file.given if file.given is not None and with_body else file.promised or whole
        self.send_header("Content-Length", str(told - first))
        self.end_headers()
        if with_body:
            with suppress(ConnectionError):
                self._send_body(file, first)

    def _send_body(self, file: SourceFile, first: int) -> None:
        content = file.content[: file.given]
        end = file.cut_at if file.cut_at is not None and file.cuts > 0 and first < file.cut_at else len(content)
        for at in range(first, end, 1 << 16):
            if file.held_at is not None and at >= file.held_at:
                file.let_go.wait(LONGEST)
            piece = content[at : min(at + (1 << 16), end)]
            self.wfile.write(piece)
            self.source.sent += len(piece)
            if file.pace:
                time.sleep(file.pace)
            if file.stalls_at is not None and at + len(piece) >= file.stalls_at:
                file.stalls_at = None
                self.connection.recv(1)  # until it is closed
                self.close_connection = True
                return
        if end < len(content) or file.promised:
            file.cuts -= 1
            if file.changes is not None:
                file.content, file.changes, file.cut_at = file.changes, None, None
            self.close_connection = True


@contextmanager
def serve_source(host: str) -> Iterator[WebSource]:
    """A server on an address that a site reaches."""
    source = WebSource()
    server = ThreadingHTTPServer((host, 0), type("Handler", (SourceHandler,), {"source": source}))
    server.daemon_threads = True
    source.address = f"{host}:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield source
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
