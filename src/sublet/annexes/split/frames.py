"""Frames on the channel between the relay and the agent: a JSON header, and a body of bytes."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Generator
from typing import Any, BinaryIO

LENGTHS = struct.Struct(">II")
SLICE = 1 << 18  # bytes of a body; a long file is sent in many frames, in turn with others
LONGEST = 1 << 22  # bytes that a header or a body may have
MARK = b"SUBLET-RELAY "  # followed by a nonce: everything that a login shell printed before it is skipped


def encode(header: dict[str, Any], body: bytes = b"") -> bytes:
    """Return a frame as bytes."""
    words = json.dumps(header).encode()
    return LENGTHS.pack(len(words), len(body)) + words + body


def lengths(start: bytes) -> tuple[int, int]:
    """Return the lengths of a frame's header and body."""
    words, body = LENGTHS.unpack(start)
    if words > LONGEST or body > LONGEST:
        raise ValueError("this is no frame")
    return words, body


def decode(words: bytes) -> dict[str, Any]:
    """Parse a frame's header."""
    header = json.loads(words.decode())
    if not isinstance(header, dict) or not isinstance(header.get("op"), str):
        raise ValueError("this is no frame")
    return header


def pieces(header: dict[str, Any], source: BinaryIO) -> Generator[tuple[dict[str, Any], bytes], None, None]:
    """Yield a file as frames, each with its offset; the last one is marked."""
    offset = 0
    piece = source.read(SLICE)
    while True:
        following = source.read(SLICE) if len(piece) == SLICE else b""
        yield dict(header, offset=offset, last=not following), piece
        offset += len(piece)
        if not following:
            return
        piece = following


def file_pieces(header: dict[str, Any], path: str) -> Generator[tuple[dict[str, Any], bytes], None, None]:
    """Yield a file as frames; nothing if it is gone."""
    try:
        with open(path, "rb") as source:
            yield from pieces(header, source)
    except FileNotFoundError:
        return


def write_whole(path: str, content: bytes, part: str) -> None:
    """Write a file atomically; `part` is the temporary path."""
    with open(part, "wb") as file:
        file.write(content)
    os.rename(part, path)
