"""SFTP packets, version 3, as OpenSSH implements it."""

from __future__ import annotations

import stat
import struct
from dataclasses import dataclass
from enum import IntEnum

HAS_SIZE, HAS_OWNER, HAS_MODE, HAS_TIMES, HAS_MORE = 1, 2, 4, 8, 1 << 31


class Packet(IntEnum):
    """Packet types of requests and answers."""

    INIT, VERSION, OPEN, CLOSE, READ, WRITE = 1, 2, 3, 4, 5, 6
    OPENDIR, READDIR, REMOVE, MKDIR, REALPATH, STAT, RENAME = 11, 12, 13, 14, 16, 17, 18
    LSTAT, STATUS, HANDLE, DATA, NAME, ATTRS, EXTENDED = 7, 101, 102, 103, 104, 105, 200


class SftpStatus(IntEnum):
    """Status codes of a server's answers."""

    OK, END, NO_SUCH_FILE, DENIED, FAILURE = 0, 1, 2, 3, 4


class SftpRefused(Exception):
    """The server refused something; its code, and its words."""

    def __init__(self, code: int, words: str) -> None:
        """Keep the code and the server's message."""
        super().__init__(words or f"the server refused, with code {code}")
        self.code = code


class SftpLost(Exception):
    """The connection is gone, or was never there; ssh's own words."""


@dataclass(frozen=True)
class RemoteEntry:
    """A file's attributes, as the server reports them."""

    size: int
    mode: int
    changed: int  # seconds since 1970

    @property
    def is_folder(self) -> bool:
        """Whether the entry is a directory."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        """Whether the entry is a regular file, which is assumed if the server doesn't report a type."""
        return stat.S_ISREG(self.mode) or not stat.S_IFMT(self.mode)

    @property
    def is_link(self) -> bool:
        """Whether the entry is a symbolic link."""
        return stat.S_ISLNK(self.mode)


class PacketBody:
    """A packet's content, read from its beginning."""

    def __init__(self, rest: bytes) -> None:
        """Start at the beginning."""
        self.rest = rest

    def read_number(self) -> int:
        """Read a number of four bytes."""
        return int.from_bytes(self._take(4))

    def read_bytes(self) -> bytes:
        """Read bytes that are preceded by their length."""
        return self._take(self.read_number())

    def read_text(self) -> str:
        """Read a string that is preceded by its length."""
        return self.read_bytes().decode("utf-8", "surrogateescape")

    def read_entry(self) -> RemoteEntry:
        """Read a file's attributes."""
        flags = self.read_number()
        size = int.from_bytes(self._take(8)) if flags & HAS_SIZE else 0
        self._take(8 if flags & HAS_OWNER else 0)
        mode = self.read_number() if flags & HAS_MODE else 0
        _, changed = (self.read_number(), self.read_number()) if flags & HAS_TIMES else (0, 0)
        for _ in range(self.read_number() if flags & HAS_MORE else 0):
            self.read_bytes(), self.read_bytes()
        return RemoteEntry(size, mode, changed)

    def _take(self, length: int) -> bytes:
        if length > len(self.rest):
            raise SftpLost("the server gave an answer that can't be read")
        taken, self.rest = self.rest[:length], self.rest[length:]
        return taken


def pack_text(text: str) -> bytes:
    """Encode a string with its length."""
    return pack_bytes(text.encode("utf-8", "surrogateescape"))


def pack_bytes(content: bytes) -> bytes:
    """Encode bytes with their length."""
    return struct.pack(">I", len(content)) + content


def read_piece(answer: tuple[int, bytes]) -> bytes:
    """Return the content in the answer to a read, or nothing at the end of the file."""
    kind, body = answer
    if kind == Packet.DATA:
        return PacketBody(body).read_bytes()
    try:
        require_ok(answer)
    except SftpRefused as refused:
        if refused.code != SftpStatus.END:
            raise
    return b""


def require_ok(answer: tuple[int, bytes]) -> None:
    """Raise SftpRefused if the answer is a refusal, or SftpLost if it isn't a status."""
    kind, rest = answer
    body = PacketBody(rest)
    if kind != Packet.STATUS:
        raise SftpLost("the server gave an answer that nobody asked for")
    if code := body.read_number():
        raise SftpRefused(code, body.read_text() if body.rest else "")
