"""Named points at which a test can pull the plug: `SUBLET_CRASH_AT=submit.after` ends the process there, hard."""

from __future__ import annotations

import os
import signal

POINTS = (
    "accept.before",
    "accept.after",
    "waiting.after",
    "preparing.after",
    "stage.after",
    "submit.before",
    "submit.after",
    "running.after",
    "ended.before",
    "releasing.after",
    "final.before",
    "final.after",
)
LEASE_POINTS = ("lease.recorded", "lease.offered", "lease.sent", "accept.before", "accept.after", "lease.accepted")
HOOK_POINTS = ("hook.spread", "hook.claimed", "hook.sent")


def point(name: str) -> None:
    """Nothing at all, unless the environment names this point."""
    if name == os.environ.get("SUBLET_CRASH_AT"):
        os.kill(os.getpid(), signal.SIGKILL)
