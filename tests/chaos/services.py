"""One service of a run: begun, killed, frozen and begun again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from sublet.booking.calls.health import health
from sublet.client.address import Address
from sublet.client.link import Link
from sublet.kernel.errors import SubletError
from tests.nursery import Begun, begin

READY = 40.0  # seconds that a start may take on a busy machine


class BrokenService:
    """`sublet serve`, as the faults treat it."""

    def __init__(
        self, number: int, socket: Path, log: Path, options: list[str], environment: Mapping[str, str]
    ) -> None:
        """Not begun yet."""
        self.number, self.socket, self.log = number, socket, log
        self._options, self._environment = options, dict(environment)
        self._process: Begun | None = None
        self.starts: list[float] = []

    @property
    def link(self) -> Link:
        """The way to it; it is never started by who finds it away."""
        return Link(Address(socket=str(self.socket)))

    @property
    def pid(self) -> int:
        """Of the process that was begun last."""
        assert self._process
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether that process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def code(self) -> int | None:
        """How that process ended."""
        return self._process.poll() if self._process else None

    def launch(self, **more: str) -> None:
        """Begin it, and don't wait."""
        with self.log.open("ab") as log:
            self._process = begin(["serve", *self._options], {**self._environment, **more}, log)
        self.starts.append(time.time())

    def wait_ready(self, seconds: float = READY) -> bool:
        """Wait until it answers; False if it ended, or took too long."""
        deadline = time.monotonic() + seconds
        while self.is_alive and time.monotonic() < deadline:
            with suppress(SubletError):
                self.link.do(health())
                return True
            time.sleep(0.02)
        return False

    def wait_death(self, seconds: float) -> bool:
        """Wait for its end; whether it came."""
        assert self._process
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return not self.is_alive

    def kill(self) -> None:
        """Pull the plug."""
        if self._process and self.is_alive:
            with suppress(ProcessLookupError):  # it has ended, and that is not known yet
                self._process.kill()
            self._process.wait(READY)

    def stop(self) -> bool:
        """Ask it to end; whether it did so in time."""
        if not self._process or not self.is_alive:
            return True
        self._process.send_signal(signal.SIGTERM)
        if self.wait_death(READY):
            return True
        self.kill()
        return False

    def freeze(self) -> None:
        """Let it stand still."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)

    def last_words(self, lines: int = 5) -> str:
        """The end of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
