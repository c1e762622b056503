r"""Paths as text that can be stored, sent and typed: file names are bytes, and some aren't valid UTF-8.

Python reads an invalid byte as half of a surrogate pair, which neither a database, nor JSON, nor a URL can hold. Here
it is written as `\xff`, and a backslash that could be mistaken for such an escape as `\x5c`. All other paths are
unchanged.
"""

from __future__ import annotations

import re

_HIDDEN = re.compile(r"[\udc80-\udcff]|\\(?=x(?:5c|[89a-f][0-9a-f]))")
_SHOWN = re.compile(r"\\x(5c|[89a-f][0-9a-f])")
_BACKSLASH = 0x5C
_SURROGATES = 0xDC00


def show_path(path: str) -> str:
    """Return a file system's path as text, with escapes for invalid bytes."""
    return _HIDDEN.sub(lambda letter: f"\\x{ord(letter[0]) & 0xFF:02x}", path)


def restore_path(text: str) -> str:
    """Return the path that a text from `show_path` stands for; it never has more folders than the text."""

    def restore(letter: re.Match[str]) -> str:
        byte = int(letter[1], 16)
        return "\\" if byte == _BACKSLASH else chr(_SURROGATES + byte)

    return _SHOWN.sub(restore, text)
