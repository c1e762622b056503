"""Keeps the C library's share of memory small, so that a service that runs for months stays as large as it was.

The C library keeps freed memory in arenas for the next allocation there, and gives each thread its own arena. What is
freed in one arena is of no use to threads of another, so a service whose dozen threads pass data to each other grows
with every session. Two arenas are enough, because Python's lock lets one thread work at a time.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
from functools import cache
from typing import Any

PAUSE = 5.0  # seconds; a call takes a few milliseconds
ARENAS = 2  # one for the threads that hold Python's lock in turn, and one for those in the database meanwhile
M_ARENA_MAX = -8  # of mallopt, in the GNU C library


def limit_arenas() -> None:
    """Let all threads that start from now on share a few arenas, unless the environment sets their number."""
    if find_trim() and "MALLOC_ARENA_MAX" not in os.environ:  # other C libraries give mallopt's numbers other meanings
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, ARENAS)


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
