"""Previews of a file from its first bytes: lines of text, rows of a table, facts about an image."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from sublet.cli.output import table
from sublet.cli.texts import size as size_text
from sublet.kernel.separated import decode_text, is_table, read_rows
from sublet.kernel.texts import count_text

PREVIEWED = 64 * 1024  # bytes that are read
WIDEST = 200  # characters of a line
FIXED = struct.Struct(">II")


@dataclass(frozen=True, slots=True)
class FilePreview:
    """A file's facts, and its first lines."""

    path: str
    size: int
    facts: str
    lines: tuple[str, ...] = ()


def describe_file(path: str, size: int, data: bytes, lines: int) -> FilePreview:
    """Describe a file by its first bytes: an image or other known format, a table, text, or not text."""
    if not size:
        return FilePreview(path, size, "empty")
    for mark, describe in IMAGES.items():
        if data.startswith(mark):
            return FilePreview(path, size, f"{describe(data)}, {size_text(size)}")
    if b"\0" in data:
        return FilePreview(path, size, f"not text, {size_text(size)}")
    is_cut = len(data) < size
    text = decode_text(data)
    text = text.rpartition("\n")[0] if is_cut and "\n" in text else text
    if is_table(path):
        return _describe_table(path, size, text, lines, is_cut=is_cut)
    whole = text.splitlines()
    shown = tuple(make_plain(line) for line in whole[:lines])
    count = f"{'more than ' if is_cut else ''}{count_text(len(whole), 'line')}"
    return FilePreview(path, size, f"text, {count}, {size_text(size)}", shown)


def _describe_table(path: str, size: int, text: str, most: int, *, is_cut: bool) -> FilePreview:
    rows = list(read_rows(text, path))
    head, body = (rows[0], rows[1:]) if rows else ([], [])
    width = max(map(len, rows), default=0)
    count = f"{'more than ' if is_cut else ''}{count_text(len(body), 'row')} of {count_text(width, 'column')}"
    names, *cells = [
        tuple(make_plain(" ".join(cell.splitlines()))[:40] for cell in [*row, *[""] * width][:width])
        for row in [head, *body[:most]]
    ]
    return FilePreview(path, size, f"table, {count}, {size_text(size)}", tuple(table(names, cells)) if head else ())


def make_plain(line: str) -> str:
    """Return the beginning of a line, with replacements for characters that would control the terminal."""
    return "".join(letter if letter.isprintable() or letter == "\t" else "�" for letter in line[:WIDEST])


def _describe_png(data: bytes) -> str:
    return (
        f"PNG image, {FIXED.unpack_from(data, 16)[0]} × {FIXED.unpack_from(data, 16)[1]} pixels"
        if len(data) > 24
        else "PNG image"
    )


def _describe_gif(data: bytes) -> str:
    width, height = struct.unpack_from("<HH", data, 6) if len(data) > 10 else (0, 0)
    return f"GIF image, {width} × {height} pixels"


def _describe_jpeg(data: bytes) -> str:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        mark, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return f"JPEG image, {width} × {height} pixels"
        at += 2 + length
    return "JPEG image"


IMAGES: dict[bytes, Callable[[bytes], str]] = {
    b"\x89PNG\r\n\x1a\n": _describe_png,
    b"GIF87a": _describe_gif,
    b"GIF89a": _describe_gif,
    b"\xff\xd8\xff": _describe_jpeg,
    b"CDF\x01": lambda _: "NetCDF file",
    b"CDF\x02": lambda _: "NetCDF file",
    b"\x89HDF\r\n\x1a\n": lambda _: "HDF5 file",
    b"SIMPLE  =": lambda _: "FITS file",
    b"%PDF-": lambda _: "PDF document",
}
