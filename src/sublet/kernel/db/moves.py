"""Moves of files that can be undone, so that several of them succeed together or change nothing."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path


class Moves:
    """Files that were moved, in order."""

    def __init__(self) -> None:
        """Begin without any."""
        self._done: list[tuple[Path, Path]] = []

    def move(self, source: Path, to: Path) -> None:
        """Move a file or directory to a path that doesn't exist, also to another file system."""
        _move(source, to)
        self._done.append((source, to))

    def undo(self) -> list[Path]:
        """Move everything back, the newest first; return the paths of files that could not be moved back."""
        left = [to for source, to in reversed(self._done) if not _has_moved_back(source, to)]
        self._done.clear()
        return left


def _has_moved_back(source: Path, to: Path) -> bool:
    try:
        _move(to, source)
    except OSError:
        return False
    return True


def _move(source: Path, to: Path) -> None:
    if os.path.lexists(to):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(to))
    try:
        os.rename(source, to)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _move_across(source, to)


def _move_across(source: Path, to: Path) -> None:
    """Move a file to another file system: the source is removed only after it was copied completely."""
    try:
        shutil.copy2(source, to)
        os.unlink(source)
    except OSError:
        to.unlink(missing_ok=True)
        raise
