"""A lease's relay as seen by the service: its directory, its process, and its state."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sublet.annexes.pilots.keeping import make_private
from sublet.annexes.split.near_half import call
from sublet.annexes.split.relay_plan import FILE, RelayOrders
from sublet.kernel.descriptors import restore_limit

FRESH = 5.0  # seconds after which its last state is stale
ANSWER = 5.0  # seconds in which it must answer


@dataclass(frozen=True)
class FarNode:
    """What a relay knows about one node."""

    number: int
    node: str
    alive: bool | None
    runs: int = 0
    ending: str = ""
    over: str = ""  # why its bridge ended by itself


@dataclass(frozen=True)
class RelayState:
    """The state of a relay."""

    link: bool = False
    trouble: str = ""
    nodes: tuple[FarNode, ...] = ()
    attempts: Mapping[str, int] = field(default_factory=dict)
    waits: tuple[str, ...] = ()  # what can't be stored at present, and why


class Relaying:
    """A relay, in a directory named by its lease."""

    def __init__(self, directory: Path) -> None:
        """Use a directory, without creating it."""
        self.directory = directory

    def prepare(self, plan: RelayOrders) -> None:
        """Write the relay's settings; a running relay keeps its own."""
        make_private(self.directory)
        plan.keep(self.directory)

    def is_prepared(self) -> bool:
        """Whether the relay's settings exist."""
        return (self.directory / FILE).exists()

    def runs(self) -> bool:
        """Whether the relay's process is running."""
        try:
            lock = os.open(self.directory / "relay.lock", os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def start(self) -> None:
        """Start the relay's process, which outlives this one; if another is running, the new one ends at once."""
        with open(os.open(self.directory / "relay.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
            relay = subprocess.Popen(
                [sys.executable, "-m", "sublet.annexes.split.relay", str(self.directory)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            restore_limit(relay.pid)

    def state(self) -> RelayState:
        """Return the relay's last reported state."""
        try:
            state: dict[str, Any] = json.loads((self.directory / "state.json").read_bytes())
        except (OSError, ValueError):
            return RelayState(trouble="it has just begun")
        nodes = tuple(FarNode(int(number), **values) for number, values in state["nodes"].items())
        if time.time() - state["time"] > FRESH:
            return RelayState(False, "its relay does not run", nodes)
        return RelayState(state["link"], state["trouble"], nodes, state["attempts"], tuple(state["waits"]))

    def ask(self, message: dict[str, Any], seconds: float = ANSWER) -> dict[str, Any]:
        """Send a message to the relay, which may just have started, and return its answer; empty if there is none."""
        return call(str(self.directory), message, ANSWER, seconds)

    def end(self) -> None:
        """Stop the relay's process, and remove its directory."""
        try:
            pid = int((self.directory / "relay.lock").read_text())
        except (OSError, ValueError):
            pid = 0
        if pid and self.runs():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            deadline = time.monotonic() + ANSWER
            while self.runs() and time.monotonic() < deadline:
                time.sleep(0.05)
        shutil.rmtree(self.directory, ignore_errors=True)
