"""Named points in the life of a shim at which a test can pull the plug: `SUBLET_CRASH_AT=shim.claimed`."""

from __future__ import annotations

import os
import signal

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
    if VARIABLE in os.environ and name == os.environ[VARIABLE]:
        os.kill(os.getpid(), signal.SIGKILL)


def order() -> dict[str, str]:
    """What a shim must be told so that it dies where a test wants it to; nothing, usually."""
    name = os.environ.get(VARIABLE, "")
    return {VARIABLE: name} if name in POINTS else {}
