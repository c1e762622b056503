"""Starts the person's own service, once, and waits until it answers."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sublet.client.address import Address
from sublet.client.http import connect
from sublet.errors import ServiceUnreachable
from sublet.home import Home

PATIENCE = 60.0  # seconds to wait for a service that is alive but doesn't listen yet
LONGEST_LOG = 10 * 1024 * 1024
LAST_LINES = 8
_started: list[subprocess.Popen[bytes]] = []  # kept, so that an early end is noticed and nothing is left unwaited for


def start(address: Address, note: Callable[[str], None]) -> None:
    """Make the personal service listen; of many who call this at once, one starts it."""
    home = address.home
    if home is None:
        raise ServiceUnreachable(address=address.text, why="it is not a service of one's own")
    home.make()
    with _alone(home):
        if _answers(address):
            return
        note("starting your Sublet service …")
        if _comes_to_answer(address, home):
            return
        process, begin = _spawn(home)
        _wait(address, home, process, begin)


@contextmanager
def _alone(home: Home) -> Iterator[None]:
    with open(os.path.join(home.run, "start.lock"), "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _answers(address: Address) -> bool:
    try:
        connect(address, 5).close()
    except OSError:
        return False
    return True


def _comes_to_answer(address: Address, home: Home) -> bool:
    """Wait while another process has the socket's lock and doesn't answer: it is about to end, or to begin."""
    deadline = time.monotonic() + PATIENCE
    with open(f"{home.socket}.lock", "a", encoding="utf-8") as lock:
        while time.monotonic() < deadline:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if _answers(address):
                    return True
                time.sleep(0.05)
            else:
                break
    return False


def _spawn(home: Home) -> tuple[subprocess.Popen[bytes], int]:
    if os.path.exists(home.log) and os.path.getsize(home.log) > LONGEST_LOG:
        os.replace(home.log, f"{home.log}.1")
    with open(home.log, "ab") as log:
        begin = log.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "sublet.cli", "serve", "--personal"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home.root,
            env={**os.environ, "SUBLET_HOME": home.root},
            start_new_session=True,  # it outlives this terminal
        )
    _started.append(process)
    return process, begin


def _wait(address: Address, home: Home, process: subprocess.Popen[bytes], begin: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while not _answers(address):
        if process.poll() is not None:
            raise _failure(address, home, begin)
        if time.monotonic() > deadline:
            raise ServiceUnreachable(address=address.text, why=f"it did not answer in {PATIENCE:.0f} s")
        time.sleep(0.02)


def _failure(address: Address, home: Home, begin: int) -> ServiceUnreachable:
    """What the service said before it ended: its own error and hint if it gave them, else its last lines."""
    with open(home.log, encoding="utf-8", errors="replace") as log:
        log.seek(begin)
        lines = [line.rstrip() for line in log if line.strip()]
    told = {
        word: line.removeprefix(f"{word}: ") for word in ("error", "hint") for line in lines if line.startswith(word)
    }
    why = told.get("error") or "it ended at once:\n  " + "\n  ".join(lines[-LAST_LINES:])
    return ServiceUnreachable(address=address.text, why=why, hint=told.get("hint") or f"Its log is {home.log}.")
