"""Files that come and go while one looks. Travels with the agent and with the far half."""

from __future__ import annotations

import os


def names(directory: str) -> list[str]:
    """What is in a directory, else nothing."""
    try:
        return os.listdir(directory)
    except OSError:
        return []


def read(path: str) -> str | None:
    """A small file, if it is there."""
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return None


def forget(path: str) -> bool:
    """Remove a file that may be gone; whether it was there."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True
