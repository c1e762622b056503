"""SFTP's packets, version 3, as OpenSSH speaks it: what is asked and answered, read and written as bytes."""

from __future__ import annotations

import stat
import struct
from dataclasses import dataclass
from enum import IntEnum

HAS_SIZE, HAS_OWNER, HAS_MODE, HAS_TIMES, HAS_MORE = 1, 2, 4, 8, 1 << 31


class Packet(IntEnum):
    """What is asked and answered."""

    INIT, VERSION, OPEN, CLOSE, READ, WRITE = 1, 2, 3, 4, 5, 6
    OPENDIR, READDIR, REMOVE, MKDIR, STAT, RENAME = 11, 12, 13, 14, 17, 18
    LSTAT, STATUS, HANDLE, DATA, NAME, ATTRS, EXTENDED = 7, 101, 102, 103, 104, 105, 200


class SftpStatus(IntEnum):
    """How a server ends what it was asked."""

    OK, END, NO_SUCH_FILE, DENIED, FAILURE = 0, 1, 2, 3, 4


class SftpRefused(Exception):
    """The server refused something; its code, and its words."""

    def __init__(self, code: int, words: str) -> None:
        """Keep both."""
        super().__init__(words or f"the server refused, with code {code}")
        self.code = code


class SftpLost(Exception):
    """The connection is gone, or was never there; ssh's own words."""


@dataclass(frozen=True)
class RemoteEntry:
    """What a server says of a file."""

    size: int
    mode: int
    changed: int  # seconds since 1970

    @property
    def is_folder(self) -> bool:
        """Whether it is a directory."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        """Whether it is a plain file; a server that doesn't say is taken to have those."""
        return stat.S_ISREG(self.mode) or not stat.S_IFMT(self.mode)

    @property
    def is_link(self) -> bool:
        """Whether it leads elsewhere."""
        return stat.S_ISLNK(self.mode)


class PacketBody:
    """An answer that is read from its beginning on."""

    def __init__(self, rest: bytes) -> None:
        """Nothing is read yet."""
        self.rest = rest

    def read_number(self) -> int:
        """Four bytes."""
        return int.from_bytes(self._take(4))

    def read_bytes(self) -> bytes:
        """As many as are said first."""
        return self._take(self.read_number())

    def read_text(self) -> str:
        """A name or words."""
        return self.read_bytes().decode("utf-8", "surrogateescape")

    def read_entry(self) -> RemoteEntry:
        """What is said of a file."""
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
    """A name, as it travels."""
    return pack_bytes(text.encode("utf-8", "surrogateescape"))


def pack_bytes(content: bytes) -> bytes:
    """Bytes with their number before them."""
    return struct.pack(">I", len(content)) + content


def read_piece(answer: tuple[int, bytes]) -> bytes:
    """What was read; nothing at the end."""
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
    """SftpRefused, if it is a refusal."""
    kind, rest = answer
    body = PacketBody(rest)
    if kind != Packet.STATUS:
        raise SftpLost("the server gave an answer that nobody asked for")
    if code := body.read_number():
        raise SftpRefused(code, body.read_text() if body.rest else "")
