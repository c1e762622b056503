"""The service's log in a file: it rotates by size, and is opened anew for logrotate."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from sublet.kernel.errors import NotHere

STDERR = 2


class LogFile:
    """A file that takes all that this process writes to its standard error.

    A file that grew beyond `largest` bytes becomes `NAME.1`, that `NAME.2`, and so on; `keep` of those stay.
    """

    def __init__(self, path: Path, largest: int, keep: int) -> None:
        """Not opened yet; `largest` 0: it never rotates by itself."""
        self.path, self.largest, self.keep = path, largest, keep
        self._size = 0

    def open(self) -> None:
        """Write to the file of this name from now on, also if another one has been moved away."""
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        sys.stderr.flush()
        os.dup2(file, STDERR)
        os.close(file)
        self._size = os.fstat(STDERR).st_size

    def write(self, text: str) -> None:
        """Write a line, and rotate after it if that is due; on a full disk lines are lost."""
        with contextlib.suppress(OSError):
            sys.stderr.write(text)
            self._size += len(text.encode("utf-8", "replace"))
            if self.largest and self._size > self.largest:
                sys.stderr.flush()
                self._rotate()

    def flush(self) -> None:
        """Nothing is held back."""
        with contextlib.suppress(OSError):
            sys.stderr.flush()

    def _rotate(self) -> None:
        self._size = 0  # also if it can't be renamed: it is tried again once as much was written
        for number in range(self.keep, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{number - 1}") if number > 1 else self.path
            with contextlib.suppress(FileNotFoundError):
                os.replace(older, self.path.with_name(f"{self.path.name}.{number}"))
        if self.keep == 0:
            self.path.unlink()
        self.open()


@contextlib.contextmanager
def redirect_stderr(file: LogFile | None) -> Iterator[None]:
    """Have the log in this file; what goes wrong at the end is again told where the service was started."""
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
