"""Start Sublet processes quickly, by forking one that has already imported everything (a fork server).

Importing takes `sublet serve` seconds, and other commands several times as long as a bare Python; the tests start
hundreds of them. Each worker has one nursery process, which forks for each command line or module. Some tests of the
command line, and the guides, start Sublet without it, as users do.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO, NoReturn, TextIO
from weakref import finalize

from sublet.kernel.plugins import GROUPS, plugins

ROOT = Path(__file__).parents[1]
LOADED = ("sublet.cli.app", "sublet.cli.serve", "sublet.server.server", "uvicorn.protocols.http.h11_impl")
SUBLET = "sublet"  # means the command line; any other program is a module's name
LARGEST = 1 << 17  # bytes of a command line and its environment
ASKING = threading.Lock()  # otherwise one thread would take the process of another for its own, and kill it


class Begun:
    """A process forked by the nursery, with the interface of `subprocess.Popen`; several threads may ask about it."""

    def __init__(self, pid: int, told: int) -> None:
        """Its exit code arrives on the pipe `told`."""
        self.pid, self._told = pid, told
        self._asking = threading.Lock()
        self.returncode: int | None = None
        self.streams: tuple[TextIO, TextIO] | None = None  # its stdin and stdout, for `talking`
        finalize(self, os.close, told)  # not before: a thread in `wait` would wait for another file of the same number

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        with self._asking:
            if self.returncode is None and select.select([self._told], [], [], 0)[0]:
                self.returncode = int(os.read(self._told, 32))
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
        """Send SIGKILL, unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def hears(self, line: str) -> None:
        """Write a line to its standard input."""
        assert self.streams
        self.streams[0].write(f"{line}\n")
        self.streams[0].flush()

    def lines(self) -> Iterator[str]:
        """Yield the lines that it prints until it ends; the last one may be incomplete."""
        assert self.streams
        yield from iter(self.streams[1].readline, "")
        for stream in self.streams:
            stream.close()


def begin(words: list[str], environment: Mapping[str, str], log: IO[bytes]) -> Begun:
    """Start a Sublet command that writes to a log."""
    with open(os.devnull, "rb") as nothing:
        return born(SUBLET, words, environment, (nothing.fileno(), log.fileno(), log.fileno()))


def typed(
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdin: str = "",
    directory: Path | None = None,
    program: str = SUBLET,
    timeout: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run a Sublet command, or a module, with these arguments, and wait for it to end."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        process = born(program, words, environment, (given.fileno(), out.fileno(), err.fileno()), directory)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess([program, *words], code, out.read().decode(), err.read().decode())


def talking(program: str, words: Sequence[str], environment: Mapping[str, str]) -> Begun:
    """Start a module with these arguments, to be written to and read from line by line."""
    (reads, to_it), (from_it, writes) = os.pipe(), os.pipe()
    begun = born(program, words, environment, (reads, writes, sys.__stderr__.fileno()))
    os.close(reads)
    os.close(writes)
    begun.streams = (os.fdopen(to_it, "w"), os.fdopen(from_it))
    return begun


def born(
    program: str,
    words: Sequence[str],
    environment: Mapping[str, str],
    streams: tuple[int, int, int],
    directory: Path | None = None,
) -> Begun:
    """Start a program with these file descriptors as standard input, output and error."""
    told, tells = os.pipe()
    message = json.dumps([program, list(words), dict(environment), str(directory or os.getcwd())]).encode()
    with ASKING:
        door = _door()
        socket.send_fds(door, [message], [*streams, tells])
        os.close(tells)
        return Begun(int(door.recv(32)), told)


@cache
def _door() -> socket.socket:
    """Start this worker's nursery on the first call; returns the socket to it. It ends with the worker."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    process = subprocess.Popen([sys.executable, "-m", "tests.nursery"], stdin=there, cwd=ROOT)
    there.close()

    def close() -> None:
        here.close()
        process.wait(30)

    atexit.register(close)
    return here


class Nursery:
    """Forks a process for each command line received on a socket, and reports its exit code."""

    def __init__(self, door: socket.socket) -> None:
        """Everything is imported already; no process is running."""
        self.door, self.ends = door, dict[int, int]()
        self.woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakes)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    def serve(self) -> None:
        """Serve until the worker closes its end of the socket, then kill all processes that still run."""
        while True:
            ready, _, _ = select.select([self.door, self.woken], [], [])
            if self.woken in ready:
                os.read(self.woken, 4096)
                self.tell()
            if self.door in ready:
                message, fds, _, _ = socket.recv_fds(self.door, LARGEST, 4)
                if not message:
                    for pid in self.ends:  # the worker was killed, and nobody else would end these
                        os.kill(pid, signal.SIGKILL)
                    return
                pid = os.fork()
                if not pid:
                    leave(become(*json.loads(message), fds[:3]))
                for fd in fds[:3]:
                    os.close(fd)
                self.ends[pid] = fds[3]
                self.door.send(str(pid).encode())

    def tell(self) -> None:
        """Report the exit codes of processes that have ended."""
        while self.ends:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with suppress(BrokenPipeError), os.fdopen(self.ends.pop(pid), "w") as tells:  # nobody may want to know
                tells.write(str(os.waitstatus_to_exitcode(status)))


def become(program: str, words: list[str], environment: dict[str, str], directory: str, streams: list[int]) -> int:
    """Turn this forked process into the program; returns its exit code."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    os.closerange(3, 1024)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    os.chdir(directory)
    sys.argv = [program, *words]
    if program == SUBLET:
        return int(importlib.import_module("sublet.cli.app").run(words))
    try:
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    except SystemExit as left:
        return left.code if isinstance(left.code, int) else int(bool(left.code))
    return 0


def leave(code: int) -> NoReturn:
    """Exit like Python, without tearing down the imported modules: that takes longer than many commands."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    gc.disable()
    for name in LOADED:
        importlib.import_module(name)
    for plugin in (one for group in GROUPS for one in plugins(group)):
        plugin.load()
    assert threading.active_count() == 1, "fork() copies only one thread"
    gc.collect()
    gc.freeze()  # imported modules stay, and forks share their memory
    gc.enable()
    Nursery(socket.socket(fileno=0)).serve()
