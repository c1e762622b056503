"""Reads a QR code of bytes at level M, by the standard's own tables, as a phone does once it has found the modules."""

from __future__ import annotations

import re
from collections.abc import Sequence

CENTRES = {1: (), 2: (6, 18), 3: (6, 22), 4: (6, 26), 5: (6, 30), 6: (6, 34), 7: (6, 22, 38), 8: (6, 24, 42)}
CENTRES |= {9: (6, 26, 46), 10: (6, 28, 50), 11: (6, 30, 54), 12: (6, 32, 58), 13: (6, 34, 62)}
DATA = {1: [16], 2: [28], 3: [44], 4: [32] * 2, 5: [43] * 2, 6: [27] * 4, 7: [31] * 4, 8: [38] * 2 + [39] * 2}
DATA |= {9: [36] * 3 + [37] * 2, 10: [43] * 4 + [44], 11: [50] + [51] * 4, 12: [36] * 6 + [37] * 2}
DATA |= {13: [37] * 8 + [38]}
FORMATS = {  # of level M, by mask
    "101010000010010": lambda i, j: (i + j) % 2,
    "101000100100101": lambda i, _: i % 2,
    "101111001111100": lambda _, j: j % 3,
    "101101101001011": lambda i, j: (i + j) % 3,
    "100010111111001": lambda i, j: (i // 2 + j // 3) % 2,
    "100000011001110": lambda i, j: (i * j) % 2 + (i * j) % 3,
    "100111110010111": lambda i, j: ((i * j) % 2 + (i * j) % 3) % 2,
    "100101010100000": lambda i, j: ((i + j) % 2 + (i * j) % 3) % 2,
}
INK = {"█": (0, 0), "▀": (0, 1), "▄": (1, 0), " ": (1, 1)}  # what is drawn is light


def read_blocks(shown: str) -> str:
    """The text of the code that a terminal shows."""
    lines = [line for line in re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines() if line.startswith(("████", "▀▀▀▀"))]
    rows = [[bool(INK[letter][half]) for letter in line] for line in lines for half in (0, 1)]
    return read([row[4:-4] for row in rows[4 : len(rows[0]) - 4]])


def read_path(path: str) -> str:
    """The text of the code whose dark modules an SVG draws."""
    places = {(int(x) - 4, int(y) - 4) for x, y in re.findall(r"M(\d+) (\d+)h1v1h-1z", path)}
    size = max(x for x, _ in places) + 1
    return read([[(x, y) in places for x in range(size)] for y in range(size)])


def read(code: Sequence[Sequence[bool]]) -> str:
    """The text of a code."""
    size = len(code)
    version = (size - 17) // 4
    beside = [code[8][x] for x in (0, 1, 2, 3, 4, 5, 7, 8)] + [code[y][8] for y in (7, 5, 4, 3, 2, 1, 0)]
    again = [code[y][8] for y in range(size - 1, size - 8, -1)] + [code[8][x] for x in range(size - 8, size)]
    assert beside == again
    mask = FORMATS["".join("01"[bit] for bit in beside)]
    bits, x, up = "", size - 1, True
    while x > 0:
        for y in range(size - 1, -1, -1) if up else range(size):
            bits += "".join(
                "01"[code[y][c] != (mask(y, c) == 0)] for c in (x, x - 1) if not is_pattern(version, size, c, y)
            )
        x, up = x - 2 - (x == 8), not up
    words = [int(bits[i : i + 8], 2) for i in range(0, len(bits) - 7, 8)]
    blocks: list[list[int]] = [[] for _ in DATA[version]]
    taken = iter(words)
    for i in range(max(DATA[version])):
        for block, length in zip(blocks, DATA[version], strict=True):
            if i < length:
                block.append(next(taken))
    stream = "".join(f"{word:08b}" for block in blocks for word in block)
    width = 8 if version < 10 else 16
    length = int(stream[4 : 4 + width], 2)
    assert stream[:4] == "0100"
    return bytes(int(stream[4 + width + 8 * i :][:8], 2) for i in range(length)).decode()


def is_pattern(version: int, size: int, x: int, y: int) -> bool:
    """Whether a module is of a pattern, the format or the version."""
    near_corner = (x < 9 and y < 9) or (x < 9 and y > size - 9) or (x > size - 9 and y < 9)
    of_version = version > 6 and ((x < 6 and y > size - 12) or (y < 6 and x > size - 12))
    centres = CENTRES[version]
    aligns = any(
        abs(x - a) < 3 and abs(y - b) < 3
        for a in centres
        for b in centres
        if (a, b) not in {(6, 6), (6, size - 7), (size - 7, 6)}
    )
    return near_corner or of_version or aligns or 6 in (x, y)
