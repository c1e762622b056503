"""Named points in the life of a shim at which a test can pull the plug: `SUBLET_CRASH_AT=shim.claimed`."""

from __future__ import annotations

import os
import signal
from functools import cache

POINTS = (
    "shim.launched",  # the service dies, right after it has started the shim
    "shim.claimed",
    "shim.named",
    "shim.ready",
    "shim.starting",  # the main process waits for the word to go on
    "shim.started",
    "shim.ending",
    "shim.told",
)
VARIABLE = "SUBLET_CRASH_AT"


def point(name: str) -> None:
    """Nothing at all, unless the environment names this point."""
    if name == find_point():
        os.kill(os.getpid(), signal.SIGKILL)


@cache
def find_point() -> str:
    """The point at which this process is to die; found once, because each request passes some."""
    return os.environ.get(VARIABLE, "")


def order() -> dict[str, str]:
    """What a shim must be told so that it dies where a test wants it to; nothing, usually."""
    return {VARIABLE: find_point()} if find_point() in POINTS else {}
