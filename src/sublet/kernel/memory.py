"""Gives memory that was freed back to the operating system, so that a service that runs for months stays small.

The C library keeps what was freed in the arena of each thread for the next allocation there. What a reader needed for a
moment would stay for ever, a little more of it as the database grows.
"""

from __future__ import annotations

import asyncio
import ctypes
from functools import cache
from typing import Any

PAUSE = 5.0  # seconds; it takes a few thousandths of one


async def trim_often() -> None:
    """Do so every now and then, until this is cancelled; at once over where the C library can't."""
    while find_trim():
        await asyncio.sleep(PAUSE)
        await asyncio.to_thread(trim_memory)


def trim_memory() -> None:
    """Give back all pages on which nothing is."""
    if trim := find_trim():
        trim(0)


@cache
def find_trim() -> Any:
    """The function of the GNU C library that does it; None with another library."""
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
