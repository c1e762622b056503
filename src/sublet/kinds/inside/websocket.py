"""The server side of a WebSocket. Travels with the job: standard library only."""

from __future__ import annotations

import base64
import hashlib
import socket
import struct
import threading
from contextlib import suppress

from sublet.kinds.inside import gate

MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # RFC 6455
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
MESSAGE_AT_MOST = 1 << 20


class WebSocket:
    """One visitor's WebSocket, after the handshake."""

    def __init__(self, visitor: socket.socket, head: gate.Head, protocol: str = "") -> None:
        """Complete the handshake; `protocol` is used if the visitor offers it."""
        self.visitor = visitor
        self.buffer = head.rest
        self.lock = threading.Lock()
        accept = base64.b64encode(
            hashlib.sha1(head.header("sec-websocket-key").encode() + MAGIC).digest()  # noqa: S324 (as the RFC has it)
        ).decode()
        lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
        offered = [word.strip() for word in head.header("sec-websocket-protocol").split(",")]
        lines += [f"Sec-WebSocket-Protocol: {protocol}"] if protocol and protocol in offered else []
        visitor.sendall("\r\n".join([*lines, f"Sec-WebSocket-Accept: {accept}", "", ""]).encode())

    def send(self, kind: int, data: bytes = b"") -> None:
        """Send one message."""
        size = len(data)
        if size < 126:
            head = struct.pack("!BB", 0x80 | kind, size)
        elif size < 65536:
            head = struct.pack("!BBH", 0x80 | kind, 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | kind, 127, size)
        with self.lock:
            self.visitor.sendall(head + data)

    def _take(self, size: int) -> bytes:
        while len(self.buffer) < size:
            piece = self.visitor.recv(65536)
            if not piece:
                raise ConnectionError("the visitor left")
            self.buffer += piece
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def _frame(self) -> tuple[bool, int, bytes]:
        first, second = self._take(2)
        size = second & 0x7F
        if size == 126:
            (size,) = struct.unpack("!H", self._take(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", self._take(8))
        if size > MESSAGE_AT_MOST or not second & 0x80 or first & 0x70:
            raise ConnectionError("not a frame that a client may send")
        mask = self._take(4)
        data = self._take(size)
        whole = int.from_bytes(data, "big") ^ int.from_bytes((mask * (size // 4 + 1))[:size], "big")
        return bool(first & 0x80), first & 0x0F, whole.to_bytes(size, "big")

    def receive(self) -> tuple[int, bytes] | None:
        """Return the next message; None when the visitor closes the connection."""
        kind, message = 0, b""
        while True:
            last, code, data = self._frame()
            if code == CLOSE:
                with suppress(OSError):
                    self.send(CLOSE, data[:2])
                return None
            if code == PING:
                self.send(PONG, data)
            elif code != PONG:
                kind, message = code or kind, message + data
                if len(message) > MESSAGE_AT_MOST:
                    raise ConnectionError("too long a message")
                if last:
                    return kind, message
