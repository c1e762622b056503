"""A minimal HTTP/1.1 client for one request and its answer, over a Unix socket, TCP or TLS.

It is handwritten because importing the standard library's client loads the whole e-mail package, which alone would take
a third of the time that `sublet ps` may take.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

from sublet.client.address import Address
from sublet.client.call import Call, HttpAnswer

LONGEST_SOCKET_PATH = 100  # the kernel allows 107 bytes
LONGEST_LINE = 65536
PIECE = 65536


class Reply:
    """A response whose body may still be arriving."""

    def __init__(self, stream: socket.socket) -> None:
        """Read the status and headers; the body is read later."""
        self._socket = stream
        self._file: IO[bytes] = stream.makefile("rb")
        self.status, self.headers = self._head()
        while self.status < 200:
            self.status, self.headers = self._head()

    def whole(self) -> HttpAnswer:
        """Read the whole body and return the answer."""
        return HttpAnswer(self.status, self.headers, b"".join(self.pieces()))

    def pieces(self) -> Iterator[bytes]:
        """Yield the body as it arrives, then close the connection."""
        try:
            if self.status in (204, 304):
                return
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                yield from self._chunks()
            elif "content-length" in self.headers:
                yield from self._count(int(self.headers["content-length"]))
            else:
                yield from iter(lambda: self._file.read(PIECE), b"")
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self._file.close()
            self._socket.close()

    def _head(self) -> tuple[int, dict[str, str]]:
        words = self._line().split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1") or not words[1].isdigit():
            raise ConnectionError("it doesn't speak HTTP")
        headers: dict[str, str] = {}
        while line := self._line():
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return int(words[1]), headers

    def _line(self) -> str:
        line = self._file.readline(LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise ConnectionResetError("the connection was lost")
        return line.decode("latin-1").rstrip("\r\n")

    def _count(self, size: int) -> Iterator[bytes]:
        while size:
            piece = self._file.read(min(size, PIECE))
            if not piece:
                raise ConnectionResetError("the connection was lost")
            size -= len(piece)
            yield piece

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self._line().partition(";")[0], 16):
            yield from self._count(size)
            self._line()
        while self._line():
            pass


def send(address: Address, call: Call[Any], timeout: float | None) -> Reply:
    """Send a call on a new connection, and read the status and headers of its answer."""
    stream = connect(address, timeout)
    try:
        stream.sendall(_request(address, call))
        return Reply(stream)
    except BaseException:
        stream.close()
        raise


def connect(address: Address, timeout: float | None) -> socket.socket:
    """Open a connection to the service."""
    if address.socket:
        return _connect_unix(address.socket, timeout)
    stream = socket.create_connection((address.host, address.port), timeout)
    if address.scheme == "https":
        import ssl  # slow to load, and the personal service never needs it

        return ssl.create_default_context().wrap_socket(stream, server_hostname=address.host)
    return stream


def _connect_unix(path: str, timeout: float | None) -> socket.socket:
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    stream.settimeout(timeout)
    directory = -1
    try:
        if len(os.fsencode(path)) > LONGEST_SOCKET_PATH:  # a path that is short wherever the home is
            directory = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
            path = f"/proc/self/fd/{directory}/{os.path.basename(path)}"
        stream.connect(path)
    except BaseException:
        stream.close()
        raise
    finally:
        if directory >= 0:
            os.close(directory)
    return stream


def _request(address: Address, call: Call[Any]) -> bytes:
    host = "localhost" if address.socket else f"{address.host}:{address.port}"
    headers = {"Host": host, "Connection": "close", **call.headers(address.token)}
    if call.body is not None or call.method != "GET":
        headers["Content-Length"] = str(len(call.body or b""))
    lines = [f"{call.method} {address.prefix}{call.target} HTTP/1.1"]
    lines += [f"{name}: {_one_line(value)}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + (call.body or b"")


def _one_line(value: str) -> str:
    return value.replace("\r", "").replace("\n", "")
