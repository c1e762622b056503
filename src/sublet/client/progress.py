"""Progress messages about what a command is waiting for."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

FIRST_WORD, NEXT_WORD = 2.0, 10.0  # seconds before the first message, and between further ones


def is_progress_wanted() -> bool:
    """Whether to print progress messages, which `SUBLET_PROGRESS=no` turns off."""
    return os.environ.get("SUBLET_PROGRESS", "").lower() not in ("no", "0", "false", "off")


class Waiting:
    """Reports what is being waited for, once that takes long."""

    def __init__(self, note: Callable[[str], None]) -> None:
        """Start the clock."""
        self._note = note
        self._began = time.monotonic()
        self._next = FIRST_WORD

    def pause(self, seconds: float, what: str) -> None:
        """Sleep, and report what is being waited for if that is due."""
        so_far = time.monotonic() - self._began
        if so_far >= self._next and is_progress_wanted():
            self._next = so_far + NEXT_WORD
            self._note(f"waiting for {what} ({so_far:.0f} s so far) …")
        time.sleep(seconds)
