"""Named points in the life of a shim at which a test can kill it: `SUBLET_CRASH_AT=shim.claimed`."""

from __future__ import annotations

import os
import signal
from functools import cache

POINTS = (
    "shim.launched",  # the service dies right after it has started the shim
    "shim.claimed",
    "shim.named",
    "shim.ready",
    "shim.starting",  # the main process waits for the signal to continue
    "shim.started",
    "shim.ending",
    "shim.told",
)
VARIABLE = "SUBLET_CRASH_AT"


def point(name: str) -> None:
    """Kill this process if the environment names this point; otherwise do nothing."""
    if name == find_point():
        os.kill(os.getpid(), signal.SIGKILL)


@cache
def find_point() -> str:
    """Return the point at which this process is to die; cached, because each request passes some points."""
    return os.environ.get(VARIABLE, "")


def order() -> dict[str, str]:
    """Return the environment that makes a shim die where a test wants it; usually empty."""
    return {VARIABLE: find_point()} if find_point() in POINTS else {}
