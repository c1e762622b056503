"""A command in a terminal of its own, typed at by a test as by a person."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence

PATIENCE = 60.0


class Terminal:
    """What it shows is read until a word appears; what is typed goes in as keys."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        """Not started yet."""
        self.words, self.environment, self.seen = words, environment, ""

    def __enter__(self) -> Terminal:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            ["setsid", "--ctty", "--wait", *self.words], env=self.environment, stdin=slave, stdout=slave, stderr=slave
        )
        os.close(slave)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)

    def reads(self, *words: str) -> str:
        """Wait until one of these words is shown, and say which."""
        deadline = time.monotonic() + PATIENCE
        while True:
            for word in words:
                if word in self.seen:
                    self.seen = self.seen.partition(word)[2]
                    return word
            ready, _, _ = select.select([self.master], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"none of {words} was shown, but: {self.seen}"
            try:
                self.seen += os.read(self.master, 65536).decode("utf-8", "replace")
            except OSError:
                raise AssertionError(f"it ended, and showed: {self.seen}") from None

    def presses(self, key: str) -> None:
        """Press one key, once single keys are waited for: what is typed before that is thrown away."""
        deadline = time.monotonic() + PATIENCE
        while termios.tcgetattr(self.master)[3] & termios.ICANON:
            assert time.monotonic() < deadline, f"no key is waited for: {self.seen}"
            time.sleep(0.01)
        os.write(self.master, key.encode())

    def types(self, text: str) -> None:
        """Type it, and Enter."""
        os.write(self.master, f"{text}\n".encode())

    def ends(self) -> int:
        """Wait for its end; its exit code."""
        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.seen
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.master, 65536).decode("utf-8", "replace")
                except OSError:
                    break
        return self.process.wait(PATIENCE)
