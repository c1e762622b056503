"""Services that begin in a moment: a process that has loaded all of Sublet becomes one after another.

`sublet serve` takes seconds to load, and the tests start it a hundred times. What begins here runs the same command
line in a process of its own. That it begins out of nothing too is shown by tests of the command line, and by guides.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[1]
LOADED = ("sublet.cli.app", "sublet.cli.serve", "sublet.api.server")
LARGEST = 1 << 17  # bytes of a command line and its environment


class Begun:
    """A process that began in the nursery, as `subprocess.Popen` shows one."""

    def __init__(self, pid: int, told: int) -> None:
        """Its end is told on a pipe."""
        self.pid, self._told = pid, told
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        if self.returncode is None and select.select([self._told], [], [], 0)[0]:
            self.returncode = int(os.read(self._told, 32))
            os.close(self._told)
        return self.returncode

    def wait(self, timeout: float) -> int:
        """Wait for its end."""
        if self.returncode is None and not select.select([self._told], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("sublet", timeout)
        ended = self.poll()
        assert ended is not None
        return ended

    def send_signal(self, number: int) -> None:
        """Signal it, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Pull its plug."""
        self.send_signal(signal.SIGKILL)


def begin(words: list[str], environment: Mapping[str, str], log: IO[bytes]) -> Begun:
    """Type a command line of Sublet, in a process of its own that writes to a log."""
    told, tells = os.pipe()
    message = json.dumps([words, dict(environment), os.getcwd()]).encode()
    door = _door()
    socket.send_fds(door, [message], [log.fileno(), tells])
    os.close(tells)
    return Begun(int(door.recv(32)), told)


@cache
def _door() -> socket.socket:
    """The way to this worker's nursery, which ends with the worker."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen([sys.executable, "-m", "tests.nursery"], stdin=there, cwd=ROOT)
    there.close()

    def close() -> None:
        here.close()
        process.wait(30)

    atexit.register(close)
    return here


class Nursery:
    """Takes command lines at its door, and tells of their ends."""

    def __init__(self, door: socket.socket) -> None:
        """All is loaded, and nobody has begun."""
        self.door, self.ends = door, dict[int, int]()
        self.woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakes)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    def serve(self) -> int:
        """Until nobody can come any more, then nobody stays; in a process that has begun, its exit code."""
        while True:
            ready, _, _ = select.select([self.door, self.woken], [], [])
            if self.woken in ready:
                os.read(self.woken, 4096)
                self.tell()
            if self.door in ready:
                message, fds, _, _ = socket.recv_fds(self.door, LARGEST, 2)
                if not message:
                    for pid in self.ends:  # of a worker that was killed
                        os.kill(pid, signal.SIGKILL)
                    return 0
                words, environment, directory = json.loads(message)
                pid = os.fork()
                if not pid:
                    return self.become(words, environment, directory, fds[0])
                os.close(fds[0])
                self.ends[pid] = fds[1]
                self.door.send(str(pid).encode())

    def tell(self) -> None:
        """Say how those that have ended did."""
        while self.ends:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with os.fdopen(self.ends.pop(pid), "w") as tells:
                tells.write(str(os.waitstatus_to_exitcode(status)))

    def become(self, words: list[str], environment: dict[str, str], directory: str, log: int) -> int:
        """Be that command."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.closerange(3, 1024)
        os.environ.clear()
        os.environ.update(environment)
        time.tzset()
        os.chdir(directory)
        sys.argv = ["sublet", *words]
        return int(importlib.import_module("sublet.cli.app").run(words))


if __name__ == "__main__":
    for name in LOADED:
        importlib.import_module(name)
    assert threading.active_count() == 1, "threads are lost in a process that begins here"
    sys.exit(Nursery(socket.socket(fileno=0)).serve())
