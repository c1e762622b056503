"""Says what is being waited for, to those who want to know."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

FIRST_WORD, NEXT_WORD = 2.0, 10.0  # seconds until it is said what is waited for, and then again


def is_progress_wanted() -> bool:
    """Whether to say what is being waited for: not with `SUBLET_PROGRESS=no`."""
    return os.environ.get("SUBLET_PROGRESS", "").lower() not in ("no", "0", "false", "off")


class Waiting:
    """Says what is being waited for, once that takes longer than people wait without a word."""

    def __init__(self, note: Callable[[str], None]) -> None:
        """Begin to count."""
        self._note = note
        self._began = time.monotonic()
        self._next = FIRST_WORD

    def pause(self, seconds: float, what: str) -> None:
        """Wait a moment longer for this."""
        so_far = time.monotonic() - self._began
        if so_far >= self._next and is_progress_wanted():
            self._next = so_far + NEXT_WORD
            self._note(f"waiting for {what} ({so_far:.0f} s so far) …")
        time.sleep(seconds)
