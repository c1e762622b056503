"""Returns freed memory to the operating system, so that a service that runs for months stays small.

The C library keeps freed memory in each thread's arena for the next allocation there. Memory that a reader needed only
briefly would stay for ever, and grow with the database.
"""

from __future__ import annotations

import asyncio
import ctypes
from functools import cache
from typing import Any

PAUSE = 5.0  # seconds; a call takes a few milliseconds


async def trim_often() -> None:
    """Trim the memory every few seconds until cancelled; return at once if the C library can't."""
    while find_trim():
        await asyncio.sleep(PAUSE)
        await asyncio.to_thread(trim_memory)


def trim_memory() -> None:
    """Return all unused pages to the operating system."""
    if trim := find_trim():
        trim(0)


@cache
def find_trim() -> Any:
    """Return malloc_trim of the GNU C library, or None with another C library."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
