"""Two clocks: the machine's, which someone may set, and a steady one, which only ever runs on.

Durations are measured by the steady clock. A test steps the machine's clock, for Sublet alone, by a number of seconds
in the file that SUBLET_CLOCK_STEP names.
"""

from __future__ import annotations

import os
import time
from functools import cache

VARIABLE = "SUBLET_CLOCK_STEP"


def wall() -> float:
    """The time that the machine's clock shows, in seconds since 1970."""
    return time.time() + _step()


def steady() -> float:
    """Seconds since the machine was started, also those that it was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def offset() -> float:
    """How far the machine's clock is ahead of the steady one: another number after someone has set it."""
    return wall() - steady()


def order() -> dict[str, str]:
    """What a shim must be told so that a test can step its clock; nothing, usually."""
    return {VARIABLE: find_step()} if find_step() else {}


@cache
def find_step() -> str:
    """The file with a test's step; empty: there is none. Found once, because each request looks at the clock often."""
    return os.environ.get(VARIABLE, "")


def _step() -> float:
    if not find_step():
        return 0.0
    try:
        with open(find_step(), encoding="ascii") as file:
            return float(file.read() or 0)
    except (OSError, ValueError):
        return 0.0
