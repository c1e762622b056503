"""A real service in a process of its own, for the tests: started, killed, started again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sublet.client import Client
from sublet.kernel.errors import SubletError
from tests.databases import put_database
from tests.nursery import Begun, begin
from tests.pace import pause

PATIENCE = 30.0


class Serving:
    """`sublet serve` on a home of its own."""

    def __init__(
        self,
        home: Path,
        *options: str,
        environment: Mapping[str, str] | None = None,
        socket: Path | None = None,
        log: Path | None = None,
    ) -> None:
        """Not started yet."""
        self.home = home
        self.options = options
        self.socket = socket or home / "run" / "sublet.sock"
        self.log_file = log or home.parent / f"{home.name}.log"
        self.environment = {**os.environ, "SUBLET_HOME": str(home), **(environment or {})}
        self.process: Begun | None = None

    def start(self, **more: str) -> Client:
        """Start it, wait until it answers, and give a client."""
        put_database(self.home / "sublet.db")
        log = self.log_file.open("ab")
        self.process = begin(["serve", *self.options], {**self.environment, **more}, log)
        log.close()
        client = Client(socket=self.socket)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                client.health()
                return client
            except SubletError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(self.log()) from None
                time.sleep(0.02)

    def log(self) -> str:
        """What it has logged."""
        return self.log_file.read_text()

    def died(self) -> int:
        """Wait until it is dead, and say of what."""
        assert self.process is not None
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        """Pull the plug."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self) -> None:
        """Ask it to end, and wait."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"it did not stop when asked\n{self.log()}") from None


@contextmanager
def serve(home: Path, settings: str) -> Iterator[Serving]:
    """A service to be started, in a new home with these settings; it is stopped at the end."""
    home.mkdir()
    (home / "sublet.toml").write_text(settings)
    serving = Serving(home)
    try:
        yield serving
    finally:
        serving.stop()


def eventually(look: object, what: str = "it", seconds: float = PATIENCE, every: float = 0.02) -> object:
    """Look again and again until the answer is true; it is the answer."""
    first = time.monotonic()
    while True:
        began = time.monotonic()
        answer = look()  # type: ignore[operator]
        if answer:
            return answer
        now = time.monotonic()
        assert now < first + seconds, f"{what} did not happen in {seconds:.0f} s"
        time.sleep(pause(now - began, every, now - first))
