"""Two clocks: the wall clock, which someone may set, and a steady one, which never jumps.

Durations are measured by the steady clock. A test can shift the wall clock, for Sublet alone, by the number of seconds
in the file that SUBLET_CLOCK_STEP names.
"""

from __future__ import annotations

import os
import time
from functools import cache

VARIABLE = "SUBLET_CLOCK_STEP"


def wall() -> float:
    """Return the wall clock's time, in seconds since 1970."""
    return time.time() + _step()


def steady() -> float:
    """Return the seconds since boot, including those while the machine was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def offset() -> float:
    """Return the difference between the wall clock and the steady one, which changes if someone sets the clock."""
    return wall() - steady()


def order() -> dict[str, str]:
    """Return the environment that lets a test shift a shim's clock; usually empty."""
    return {VARIABLE: find_step()} if find_step() else {}


@cache
def find_step() -> str:
    """Return the file with a test's shift, or an empty string; cached, because each request reads the clock often."""
    return os.environ.get(VARIABLE, "")


def _step() -> float:
    if not find_step():
        return 0.0
    try:
        with open(find_step(), encoding="ascii") as file:
            return float(file.read() or 0)
    except (OSError, ValueError):
        return 0.0
