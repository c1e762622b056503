"""A secret in an operator's file: read when it is needed, and only if nobody else can read it."""

from __future__ import annotations

import stat
from pathlib import Path


def read_secret_file(file: Path) -> str:
    """Return the secret; raise ValueError if the file is empty, can't be read, or others can read it."""
    try:
        if stat.S_IMODE(file.stat().st_mode) & 0o077:
            raise ValueError(f"others can read {file}; `chmod 600` it")
        secret = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ValueError(f"{file} can't be read: {reason}") from error
    if not secret:
        raise ValueError(f"{file} is empty")
    return secret
