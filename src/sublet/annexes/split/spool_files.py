"""Files that may appear and vanish at any time. Sent with the agent and with the far half."""

from __future__ import annotations

import errno
import os

GENTLY = ".gently"  # the end of the name of an order to stop that only asks a job to end; it needs no room
SCARCE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE, errno.ENOMEM, errno.EAGAIN, errno.EMFILE, errno.ENFILE)


def is_scarce(error: BaseException) -> bool:
    """Whether an error is a lack of space or other resources, so that it may work later."""
    return isinstance(error, OSError) and error.errno in SCARCE


def names(directory: str) -> list[str]:
    """List a directory, or nothing if it can't be read."""
    try:
        return os.listdir(directory)
    except OSError:
        return []


def read(path: str) -> str | None:
    """Read a small file, or None if it can't be read."""
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return None


def write_at(path: str, offset: int, content: bytes) -> int:
    """Write into a file at an offset; return how many bytes were written."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        return os.pwrite(file, content, offset)
    finally:
        os.close(file)


def pulse(directory: str, stem: str, count: str) -> None:
    """Give a sign of life where the disk has no room for content: an empty file with the count in its name."""
    target = os.path.join(directory, stem + "." + count)
    try:
        for name in pulses(directory, stem)[:1]:
            return os.rename(os.path.join(directory, name), target)
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT, 0o600))
    except OSError:
        pass


def pulses(directory: str, stem: str) -> list[str]:
    """List the names of such files."""
    return [name for name in names(directory) if name.startswith(stem + ".")]


def forget_pulses(directory: str, stem: str) -> None:
    """Remove such files, since there is room again."""
    for name in pulses(directory, stem):
        forget(os.path.join(directory, name))


def forget(path: str) -> bool:
    """Remove a file; return whether it existed."""
    try:
        os.unlink(path)
    except OSError:
        return False
    return True
