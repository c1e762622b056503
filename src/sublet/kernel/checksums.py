"""Checksums of files, of every kind that data is promised by."""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path

READ = 1 << 20


class Adler32:
    """The checksum that the stores of physics and astronomy keep, computed as those of hashlib are."""

    def __init__(self) -> None:
        """Of nothing yet."""
        self._value = 1

    def update(self, piece: bytes) -> None:
        """Add what comes next."""
        self._value = zlib.adler32(piece, self._value)

    def hexdigest(self) -> str:
        """Eight digits."""
        return f"{self._value:08x}"


def compute_checksum(file: Path, kind: str) -> str:
    """The checksum of a file, in hexadecimal digits."""
    digest = Adler32() if kind == "adler32" else hashlib.new(kind, usedforsecurity=False)
    with file.open("rb") as opened:
        while piece := opened.read(READ):
            digest.update(piece)
    return digest.hexdigest()
