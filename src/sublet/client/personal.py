"""Starts the person's own service, only once, and waits until it answers."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from sublet.client.address import Address
from sublet.client.http import connect
from sublet.client.progress import Waiting
from sublet.kernel.errors import ServiceUnreachable, UnusableHome
from sublet.kernel.extras import require_server
from sublet.kernel.home import Home

PATIENCE = 60.0  # seconds to wait for a service that runs but doesn't listen yet
LEAST_ROOM = 64 * 1024  # bytes of disk that a service needs to start
LAST_LINES = 8
OVERTAKEN = "already-served"  # the error code of a service that found another one serving
_started: list[subprocess.Popen[bytes]] = []  # kept to notice an early exit, and to reap the processes


def start(address: Address, note: Callable[[str], None]) -> None:
    """Start the personal service unless it answers; if several processes call this at once, one of them starts it."""
    home = address.home
    if home is None:
        raise ServiceUnreachable(address=address.text, why="it is not a service of one's own")
    home.make()
    waiting = Waiting(note)
    with _alone(home, waiting):
        if _answers(address):
            return
        require_server("A service of your own")
        note("starting your Sublet service …")
        deadline = time.monotonic() + PATIENCE
        while not _comes_to_answer(address, home, waiting):
            try:
                _start_one(address, home, waiting)
                return
            except _OvertakenError as error:  # another command started one without waiting for it
                if time.monotonic() > deadline:
                    raise error.why from None


class _OvertakenError(Exception):
    """The service that was started has ended, because another one was faster."""

    def __init__(self, why: ServiceUnreachable) -> None:
        super().__init__(why.message)
        self.why = why


def _start_one(address: Address, home: Home, waiting: Waiting) -> None:
    with open(home.log, "a+b") as log:
        begin = log.seek(0, os.SEEK_END)
        process = _spawn(home, log)
        _wait(address, home, process, lambda: _read_log_since(log, begin), waiting)


@contextmanager
def _alone(home: Home, waiting: Waiting) -> Iterator[None]:
    with _open_lock(home) as file:
        while not _lock(file):
            waiting.pause(0.02, "another command that is starting your service")
        yield


def _open_lock(home: Home) -> IO[str]:
    try:
        return open(os.path.join(home.run, "start.lock"), "w", encoding="utf-8")
    except OSError as error:
        raise UnusableHome(home=home.root, why=error.strerror) from error


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _answers(address: Address) -> bool:
    try:
        connect(address, 5).close()
    except OSError:
        return False
    return True


def _comes_to_answer(address: Address, home: Home, waiting: Waiting) -> bool:
    """Whether another process that holds the socket's lock, and is starting or stopping, comes to answer."""
    deadline = time.monotonic() + PATIENCE
    with open(f"{home.socket}.lock", "a", encoding="utf-8") as lock:
        while time.monotonic() < deadline and not _lock(lock):
            if _answers(address):
                return True
            waiting.pause(0.05, "a service of yours that is ending, or beginning")
    return False


def _spawn(home: Home, log: IO[bytes]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "sublet.cli", "serve", "--personal", "--json"],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        cwd=home.root,
        env={**os.environ, "SUBLET_HOME": home.root},
        start_new_session=True,  # so that it outlives this terminal
    )
    _started.append(process)
    return process


def _read_log_since(log: IO[bytes], begin: int) -> str:
    """Return what the service wrote to the log since it was started; its file may have been rotated meanwhile."""
    size = os.fstat(log.fileno()).st_size
    return os.pread(log.fileno(), max(0, size - begin), begin).decode(errors="replace")


def _wait(
    address: Address, home: Home, process: subprocess.Popen[bytes], written: Callable[[], str], waiting: Waiting
) -> None:
    deadline, log = time.monotonic() + PATIENCE, home.find_log()
    while not _answers(address):
        if process.poll() is not None:
            lines = [line.rstrip() for line in written().splitlines() if line.strip()]
            problem = _read_problem(lines)
            failure = _failure(address, home, lines, problem)
            raise _OvertakenError(failure) if problem.get("code") == OVERTAKEN else failure
        if time.monotonic() > deadline:
            raise ServiceUnreachable(address=address.text, why=f"it did not answer in {PATIENCE:.0f} s")
        doing = "asks its platforms" if os.path.exists(home.database) else "is being loaded, and makes its database"
        waiting.pause(0.02, f"your service, which {doing}; its log is {log}")


def _find_disk_trouble(home: Home) -> str:
    """Return the system's message if nothing can be written to a home; otherwise ""."""
    import tempfile  # only here: it takes long to import

    try:
        with tempfile.TemporaryFile(dir=home.root) as file:
            file.write(bytes(LEAST_ROOM))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _failure(address: Address, home: Home, lines: list[str], problem: dict[str, object]) -> ServiceUnreachable:
    """Return the error for a service that ended: with its own error and hint if it reported them, or its last lines."""
    why, hint = str(problem.get("detail", "")), str(problem.get("hint", ""))
    if not why and (trouble := _find_disk_trouble(home)):
        why, hint = f"nothing can be written to {home.root}: {trouble}", "Free some space there, then try again."
    why = why or "it ended at once:\n  " + "\n  ".join(lines[-LAST_LINES:])
    return ServiceUnreachable(address=address.text, why=why, hint=hint or f"Its log is {home.find_log()}.")


def _read_problem(lines: list[str]) -> dict[str, object]:
    """Return the problem document that a command with --json writes when it fails; empty if there is none."""
    import json  # only here: it takes long to import

    for line in reversed(lines):
        try:
            problem = json.loads(line)
        except ValueError:
            continue
        if isinstance(problem, dict) and {"code", "detail"} <= problem.keys():
            return problem
    return {}
