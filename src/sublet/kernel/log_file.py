"""The service's log in a file: it rotates by size, and can be reopened for logrotate."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from sublet.kernel.errors import NotHere
from sublet.kernel.safe_paths import find_stranger

STDERR = 2


class LogFile:
    """A log file that receives everything this process writes to standard error.

    When it exceeds `largest` bytes, it is renamed to `NAME.1`, the previous one to `NAME.2`, and so on; `keep` of them
    are kept.
    """

    def __init__(self, path: Path, largest: int, keep: int) -> None:
        """Configure the file without opening it; if `largest` is 0, it never rotates by itself."""
        self.path, self.largest, self.keep = path, largest, keep
        self._size = 0

    def open(self) -> None:
        """Redirect standard error to the file of this name, also after logrotate has renamed the previous one."""
        if stranger := find_stranger(str(self.path)):  # they could read it, or have it written to another file
            raise PermissionError(errno.EPERM, f"it belongs to {stranger}")
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        sys.stderr.flush()
        os.dup2(file, STDERR)
        os.close(file)
        self._size = os.fstat(STDERR).st_size

    def write(self, text: str) -> None:
        """Write a line, then rotate if that is due; on a full disk, lines are lost."""
        with contextlib.suppress(OSError):
            sys.stderr.write(text)
            self._size += len(text.encode("utf-8", "replace"))
            if self.largest and self._size > self.largest:
                sys.stderr.flush()
                self._rotate()

    def flush(self) -> None:
        """Flush standard error."""
        with contextlib.suppress(OSError):
            sys.stderr.flush()

    def _rotate(self) -> None:
        self._size = 0  # also if renaming fails, so that it is retried only after as many bytes again
        for number in range(self.keep, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{number - 1}") if number > 1 else self.path
            with contextlib.suppress(FileNotFoundError):
                os.replace(older, self.path.with_name(f"{self.path.name}.{number}"))
        if self.keep == 0:
            self.path.unlink()
        self._remove_beyond(self.keep)
        self.open()

    def _remove_beyond(self, last: int) -> None:
        """Remove files from when more were kept."""
        with contextlib.suppress(OSError):
            for number in itertools.count(last + 1):
                self.path.with_name(f"{self.path.name}.{number}").unlink()


@contextlib.contextmanager
def redirect_stderr(file: LogFile | None) -> Iterator[None]:
    """Redirect standard error to this file; restore it at the end, so that final errors reach the terminal."""
    if file is None:
        yield
        return
    before = os.dup(STDERR)
    try:
        try:
            file.open()
        except OSError as error:
            why = f"its log {file.path} can't be written: {error.strerror}"
            raise NotHere(
                why=why, advice="Change `file` under [logs] in the settings, or make its directory."
            ) from None
        yield
    finally:
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os.dup2(before, STDERR)
        os.close(before)
