"""Operators of shells (pipes, redirections and the like) in lines that no shell reads, where they would be words."""

from __future__ import annotations

import re

OPERATOR = re.compile(r"(?<!\S)(\|\|?|&&?|;|[0-9&]?>{1,2}(?:&[0-9])?|[0-9]?<{1,3})")


def find_operator(line: str) -> str:
    """Return the first operator that begins a word of the line outside quotes, or an empty string."""
    match = OPERATOR.search(_cover_quoted(line))
    return match[1] if match else ""


def _cover_quoted(line: str) -> str:
    """Return the line with another character in place of each that is quoted or escaped."""
    covered, quote, is_escaped = list[str](), "", False
    for letter in line:
        is_plain = not quote and not is_escaped and letter not in "'\"\\"
        covered.append(letter if is_plain else "x")
        if is_escaped:
            is_escaped = False
        elif letter == "\\" and quote != "'":
            is_escaped = True
        elif letter in ("'", '"') and quote in ("", letter):
            quote = "" if quote else letter
    return "".join(covered)
