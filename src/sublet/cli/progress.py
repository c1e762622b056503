"""One line on the terminal that says what is being waited for; nothing where there is no terminal."""

from __future__ import annotations

import sys
import threading

CLEAR = "\r\033[K"


class Progress:
    """A line that is drawn over again, until something else is to be said."""

    def __init__(self, *, wanted: bool) -> None:
        """Nothing is shown yet."""
        self._wanted = wanted and sys.stderr.isatty()
        self._lock = threading.Lock()
        self._shown = False
        self._over = False

    @property
    def is_over(self) -> bool:
        """Whether something else has been said for good, such as what a job prints."""
        return self._over

    def show(self, text: str) -> None:
        """Say it in the place of what was said before."""
        with self._lock:
            if self._wanted and not self._over:
                sys.stderr.write(f"{CLEAR}{text}")
                sys.stderr.flush()
                self._shown = True

    def clear(self) -> None:
        """Make room for other words."""
        with self._lock:
            if self._shown:
                sys.stderr.write(CLEAR)
                sys.stderr.flush()
                self._shown = False

    def end(self) -> None:
        """Make room, for good."""
        self.clear()
        self._over = True
