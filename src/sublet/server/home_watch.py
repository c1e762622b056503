"""Ends a service whose home was removed: it could never be found again, and would run for ever."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from sublet.kernel.log import log

OFTEN = 5.0  # seconds between two looks
LOOKS = 2  # that have to find no home: it may be exchanged for another copy by renaming


async def end_without_home(root: str, stop: Callable[[], None], often: float = OFTEN) -> None:
    """Call `stop` once the home is gone, or removed and made anew; a home that can't be reached is not gone."""
    directory = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        missed = 0
        while missed < LOOKS:
            await asyncio.sleep(often)
            missed = missed + 1 if _is_gone(root, directory) else 0
    finally:
        os.close(directory)
    log.error("service.home-removed", home=root)
    stop()


def _is_gone(root: str, directory: int) -> bool:
    try:
        os.stat(root)
        return os.fstat(directory).st_nlink == 0
    except FileNotFoundError:
        return True
    except OSError:
        return False
