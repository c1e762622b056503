"""A clock that is moved on by whoever plays a day, and that other processes read: a number in a shared file."""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

SECONDS = struct.Struct("d")


class MovedClock:
    """The service's clock: it stands still until it is moved on."""

    def __init__(self, file: Path) -> None:
        """It begins now; the file is there, and may be read already."""
        with file.open("r+b") as opened:
            self._shared = mmap.mmap(opened.fileno(), SECONDS.size)
        SECONDS.pack_into(self._shared, 0, time.time())

    def __call__(self) -> datetime:
        """The time, aware, in UTC."""
        return datetime.fromtimestamp(SECONDS.unpack_from(self._shared)[0], UTC)

    def move(self, seconds: float) -> None:
        """Let so much time pass."""
        SECONDS.pack_into(self._shared, 0, SECONDS.unpack_from(self._shared)[0] + seconds)


def read_clock(file: Path) -> Callable[[], float]:
    """The time of such a clock, in seconds, as another process sees it."""
    with file.open("rb") as opened:
        shared = mmap.mmap(opened.fileno(), SECONDS.size, prot=mmap.PROT_READ)
    return lambda: float(SECONDS.unpack_from(shared)[0])
