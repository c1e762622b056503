"""What a machine is short of for a moment: descriptors, processes, memory. The shim waits until there is some again."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from typing import TypeVar

from . import clocks

SHORT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN})
NO_ROOM = 75  # the exit code of a shim that could not begin for want of these: sysexits' EX_TEMPFAIL
FIRST, LONGEST = 0.01, 1.0  # seconds between two tries

T = TypeVar("T")


def is_short(error: OSError) -> bool:
    """Whether it would have worked on a machine that has enough."""
    return error.errno in SHORT


def patiently(act: Callable[[], T], until: float | None = None) -> T:
    """Do something that the machine may be too short of things for, again and again; to this steady time at most."""
    wait = FIRST
    while True:
        try:
            return act()
        except OSError as error:
            if not is_short(error) or (until is not None and clocks.steady() >= until):
                raise
        time.sleep(wait)
        wait = min(LONGEST, 2 * wait)
