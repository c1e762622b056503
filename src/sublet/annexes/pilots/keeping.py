"""Files that only their owner may read: secrets, and decisions to keep."""

from __future__ import annotations

import os
from pathlib import Path

PRIVATE_FILE, PRIVATE_DIRECTORY = 0o600, 0o700


def keep(path: Path, content: bytes) -> None:
    """Write a file atomically, readable by its owner only."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE), "wb") as file:
            file.write(content)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def keep_first(path: Path, content: bytes) -> bytes:
    """Write a file unless it exists; return its content."""
    try:
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    except FileExistsError:
        return path.read_bytes()
    with open(opened, "wb") as file:
        file.write(content)
    return content


def make_private(directory: Path) -> None:
    """Create a directory that only its owner can enter."""
    directory.mkdir(mode=PRIVATE_DIRECTORY, parents=True, exist_ok=True)
    directory.chmod(PRIVATE_DIRECTORY)
