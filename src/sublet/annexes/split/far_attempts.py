"""Attempts on a node, and their results until they are delivered. Sent with the far half."""

from __future__ import annotations

import subprocess
import time
from typing import Any

AGAIN = 2.0  # seconds until delivery is retried after the spool had no room for a result


class FarAttempt:
    """One job that was given to this node once, and runs."""

    def __init__(self, name: str, directory: str, starter: subprocess.Popen[bytes], seen: dict[str, Any]) -> None:
        """Keep the attempt's directory and its running starter."""
        self.name, self.directory, self.starter, self.seen = name, directory, starter, seen
        self.void = False  # its result must not be delivered
        self.ending = False  # its job was asked to end
        self.shown = {"out": 0, "err": 0}


class WaitingAttempt:
    """An attempt for which this node had no room; it is back in the spool."""

    def __init__(self) -> None:
        """Schedule the next attempt."""
        self.since = time.monotonic()
        self.again = self.since + AGAIN


class FarResult:
    """The result of an attempt, until it is delivered."""

    def __init__(self, name: str, directory: str, failure: str, seen: dict[str, Any]) -> None:
        """Keep the result, which hasn't been sent yet."""
        self.name, self.directory, self.failure, self.seen = name, directory, failure, seen
        self.since = self.tried = time.monotonic()
        self.unsent = ""  # why the job has to be held: then only this text is sent
        self.explains = False  # the failure says it all, without the starter's log
        self.evicted = False  # its job was asked to end
        self.saves = True  # its outputs are sent
