"""The key in SUBLET_HOME from which sessions' secrets are derived: created once, and atomically."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from sublet.kernel.errors import BadSecretKey

SIZE = 32  # bytes


def read_or_make_key(file: Path) -> bytes:
    """Return the key, created if it is missing; raise BadSecretKey if the file has another size, as a truncated one."""
    if not file.exists():
        _make_key(file)
    key = file.read_bytes()
    if len(key) != SIZE:
        raise BadSecretKey(file=file, size=len(key), wanted=SIZE)
    return key


def _make_key(file: Path) -> None:
    """Write a key durably; if several processes do so at once, the first one's key is used."""
    part = file.with_name(f"{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(secrets.token_bytes(SIZE))
        opened.flush()
        os.fsync(opened.fileno())
    with suppress(FileExistsError):
        os.link(part, file)
    part.unlink()
    directory = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
