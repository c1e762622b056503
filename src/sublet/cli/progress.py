"""A progress line on the terminal or, elsewhere, an occasional plain line."""

from __future__ import annotations

import os
import sys
import threading
import time

from sublet.cli.screen import columns_of, fit, is_terminal
from sublet.cli.texts import with_local_times
from sublet.client.progress import is_progress_wanted

CLEAR = "\r\033[K"
FIRST_LINE, LONGEST_SILENCE = 30.0, 600.0  # seconds before the first plain line, and the most between two


class Progress:
    """A progress line that overwrites itself."""

    def __init__(self, *, wanted: bool) -> None:
        """Start without a line."""
        self._wanted = wanted and is_progress_wanted()
        self._redraws = is_terminal(sys.stderr) and os.environ.get("TERM") != "dumb"
        self._next = time.monotonic() + FIRST_LINE
        self._silence = FIRST_LINE
        self._lock = threading.Lock()
        self._shown = False
        self._over = False

    @property
    def is_over(self) -> bool:
        """Whether the progress line has ended for good, because other output, such as a job's, has begun."""
        return self._over

    def show(self, text: str) -> None:
        """Replace the progress line by this text."""
        with self._lock:
            if not self._wanted or self._over:
                return
            text = with_local_times(text)
            if not self._redraws:
                self._say_now_and_then(text)
                return
            room = (columns_of(sys.stderr) or 80) - 1  # a line that fills the last column can't be overwritten
            sys.stderr.write(f"{CLEAR}{fit(text.replace(chr(10), ' '), room)}")
            sys.stderr.flush()
            self._shown = True

    def _say_now_and_then(self, text: str) -> None:
        """Print a plain line, less and less often."""
        if time.monotonic() < self._next:
            return
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
        self._silence = min(self._silence * 2, LONGEST_SILENCE)
        self._next = time.monotonic() + self._silence

    def clear(self) -> None:
        """Clear the progress line so that something else can be printed."""
        with self._lock:
            if self._shown:
                sys.stderr.write(CLEAR)
                sys.stderr.flush()
                self._shown = False

    def end(self) -> None:
        """Clear the progress line, and show none again."""
        self.clear()
        self._over = True
