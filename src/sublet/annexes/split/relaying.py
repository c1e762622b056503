"""A lease's relay, seen from the service: its directory, its process, and what it says of itself."""

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

FRESH = 5.0  # seconds after which what it last said of itself is old
ANSWER = 5.0  # seconds that it has to answer


@dataclass(frozen=True)
class FarNode:
    """What a relay knows of one node."""

    number: int
    node: str
    alive: bool | None
    runs: int = 0
    ending: str = ""
    over: str = ""  # why its bridge ended by itself


@dataclass(frozen=True)
class RelayState:
    """How a relay is."""

    link: bool = False
    trouble: str = ""
    nodes: tuple[FarNode, ...] = ()
    attempts: Mapping[str, int] = field(default_factory=dict)
    waits: tuple[str, ...] = ()  # what can't be stored at present, and why


class Relaying:
    """One, below a directory that is named by its lease."""

    def __init__(self, directory: Path) -> None:
        """Nothing is made yet."""
        self.directory = directory

    def prepare(self, plan: RelayOrders) -> None:
        """Write down what it is to do; a relay that runs goes on as it is."""
        make_private(self.directory)
        plan.keep(self.directory)

    def is_prepared(self) -> bool:
        """Whether it was told what to do."""
        return (self.directory / FILE).exists()

    def runs(self) -> bool:
        """Whether its process is there."""
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
        """Start its process, which outlives this one; of two, one ends at once."""
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
        """What it last said of itself."""
        try:
            state: dict[str, Any] = json.loads((self.directory / "state.json").read_bytes())
        except (OSError, ValueError):
            return RelayState(trouble="it has just begun")
        nodes = tuple(FarNode(int(number), **values) for number, values in state["nodes"].items())
        if time.time() - state["time"] > FRESH:
            return RelayState(False, "its relay does not run", nodes)
        return RelayState(state["link"], state["trouble"], nodes, state["attempts"], tuple(state["waits"]))

    def ask(self, message: dict[str, Any], seconds: float = ANSWER) -> dict[str, Any]:
        """Tell it something, which may have just begun, and wait for its answer; empty if there is none."""
        return call(str(self.directory), message, ANSWER, seconds)

    def end(self) -> None:
        """End its process, and forget all that it kept."""
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
