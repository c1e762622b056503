"""How a service is to be started, and which process serves a home."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass

from sublet.kernel.home import Home

IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)  # by nohup, or by a shell in the background


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """What `sublet serve` was told; what is None comes from the settings."""

    host: str | None = None
    port: int | None = None
    platform: str | None = None  # one platform of this kind, instead of those in the settings: "memory"
    config: str | None = None  # another settings file
    gateway: bool = False
    database: str | None = None
    socket: str | None = None  # another path than the one in SUBLET_HOME
    personal: bool = False  # started by itself: the socket, and a free TCP port for the pages
    verbose: bool = False


@dataclass(frozen=True)
class Serving:
    """The process that serves a home: its pid, when that began, and where it listens."""

    pid: int
    start: int  # the process's start time as the kernel counts it, so that a reused pid is not taken for it
    url: str  # of its TCP port; empty when there is none
    socket: str


def process_start(pid: int) -> int | None:
    """When a process began, in the kernel's clock ticks; None when there is no such process, or only its remains."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, *rest = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in ("Z", "X") else int(rest[18])


def record_serving(home: Home, url: str, socket: str) -> None:
    """Write down that this process serves the home."""
    pid = os.getpid()
    record = {"pid": pid, "start": process_start(pid), "url": url, "socket": socket}
    part = f"{home.state}.{pid}"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(record, file)
    os.replace(part, home.state)


def read_serving(home: Home) -> Serving | None:
    """The process that serves the home, if it is still there."""
    try:
        with open(home.state, encoding="utf-8") as file:
            serving = Serving(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None
    return serving if process_start(serving.pid) == serving.start else None


def heed_signals() -> None:
    """Do nothing where a signal was ignored: what is ignored is handed on to all that is started here."""
    for number in IGNORED:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _nothing)


def _nothing(number: int, frame: object) -> None:
    pass
