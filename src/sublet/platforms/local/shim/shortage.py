"""Temporary shortages of a machine: descriptors, processes, memory. The shim waits until they are over."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from typing import TypeVar

from . import clocks

SHORT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN})
NO_ROOM = 75  # exit code of a shim that couldn't start because of these: sysexits' EX_TEMPFAIL
FIRST, LONGEST = 0.01, 1.0  # seconds between two tries

T = TypeVar("T")


def is_short(error: OSError) -> bool:
    """Whether an error is due to a temporary shortage."""
    return error.errno in SHORT


def patiently(act: Callable[[], T], until: float | None = None) -> T:
    """Retry an action while the machine has a shortage, until this time on the steady clock at most."""
    wait = FIRST
    while True:
        try:
            return act()
        except OSError as error:
            if not is_short(error) or (until is not None and clocks.steady() >= until):
                raise
        time.sleep(wait)
        wait = min(LONGEST, 2 * wait)
