r"""Paths as text that can be stored, sent and typed: names of files are bytes, and some are no UTF-8.

Python reads such a byte as half of a surrogate pair, which neither a database, nor JSON, nor an address can hold. Here
it is written as `\xff`, and a backslash that could be read as one of those as `\x5c`. All other paths are as they are.
"""

from __future__ import annotations

import re

_HIDDEN = re.compile(r"[\udc80-\udcff]|\\(?=x(?:5c|[89a-f][0-9a-f]))")
_SHOWN = re.compile(r"\\x(5c|[89a-f][0-9a-f])")
_BACKSLASH = 0x5C
_SURROGATES = 0xDC00


def show_path(path: str) -> str:
    """A path of a system as text."""
    return _HIDDEN.sub(lambda letter: f"\\x{ord(letter[0]) & 0xFF:02x}", path)


def restore_path(text: str) -> str:
    """The path that a text stands for; it never has more folders than the text."""

    def restore(letter: re.Match[str]) -> str:
        byte = int(letter[1], 16)
        return "\\" if byte == _BACKSLASH else chr(_SURROGATES + byte)

    return _SHOWN.sub(restore, text)
