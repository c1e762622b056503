"""Checksums of files, by all algorithms that data can be declared with."""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path

READ = 1 << 20


class Adler32:
    """Adler-32, which storage systems of physics and astronomy use, with the interface of hashlib's digests."""

    def __init__(self) -> None:
        """Start with the checksum of no data."""
        self._value = 1

    def update(self, piece: bytes) -> None:
        """Add the next bytes."""
        self._value = zlib.adler32(piece, self._value)

    def hexdigest(self) -> str:
        """Return the checksum as eight hexadecimal digits."""
        return f"{self._value:08x}"


def compute_checksum(file: Path, kind: str) -> str:
    """Return the checksum of a file in hexadecimal digits."""
    digest = Adler32() if kind == "adler32" else hashlib.new(kind, usedforsecurity=False)
    with file.open("rb") as opened:
        while piece := opened.read(READ):
            digest.update(piece)
    return digest.hexdigest()
