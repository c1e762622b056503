"""A secret in an operator's file: read when it is needed, and only if nobody else can read it."""

from __future__ import annotations

import re
import stat
from pathlib import Path

VISIBLE = re.compile(r"[!-~]+")


def find_token_fault(token: str) -> str:
    """Return why no header can hold a token, without quoting it; empty if one can.

    HTTP libraries quote headers that they can't send in their error messages, which other people may see.
    """
    if len(token.splitlines()) > 1:
        return "it is more than one line"
    return "" if VISIBLE.fullmatch(token) else "it has spaces, control characters, or characters that are no ASCII"


def read_secret_file(file: Path) -> str:
    """Return the token in a file.

    Raise ValueError if the file is empty, can't be read, others can read it, or no header can hold what it contains.
    """
    try:
        if stat.S_IMODE(file.stat().st_mode) & 0o077:
            raise ValueError(f"others can read {file}; `chmod 600` it")
        secret = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ValueError(f"{file} can't be read: {reason}") from error
    if not secret:
        raise ValueError(f"{file} is empty")
    if fault := find_token_fault(secret):
        raise ValueError(f"the token in {file} can't be sent: {fault}")
    return secret
