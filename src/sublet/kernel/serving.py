"""The options to start a service with, and the record of which process serves a home."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass

from sublet.kernel.home import Home

IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)  # nohup and background shells ignore them


@dataclass(frozen=True, kw_only=True)
class ServeOptions:
    """The options of `sublet serve`; None means the value from the settings."""

    host: str | None = None
    port: int | None = None
    platform: str | None = None  # only one platform, of this kind, instead of those in the settings: "memory"
    config: str | None = None  # the settings file, instead of the default
    gateway: bool = False
    database: str | None = None
    socket: str | None = None  # the Unix socket, instead of the one in SUBLET_HOME
    personal: bool = False  # started by a command: on the Unix socket, and on a free TCP port for web pages
    verbose: bool = False


@dataclass(frozen=True)
class Serving:
    """The process that serves a home: its pid, its start time, and where it listens."""

    pid: int
    start: int  # the process's start time in the kernel's ticks, to recognize a reused pid
    url: str  # the address of its TCP port; empty if there is none
    socket: str


def process_start(pid: int) -> int | None:
    """Return when a process started, in the kernel's clock ticks; None if it doesn't exist or is a zombie."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state, *rest = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if state in ("Z", "X") else int(rest[18])


def record_serving(home: Home, url: str, socket: str) -> None:
    """Record that this process serves the home."""
    pid = os.getpid()
    record = {"pid": pid, "start": process_start(pid), "url": url, "socket": socket}
    part = f"{home.state}.{pid}"
    with open(part, "w", encoding="utf-8") as file:
        json.dump(record, file)
    os.replace(part, home.state)


def forget_serving(home: Home) -> None:
    """Remove the record when this process ends, unless another process serves the home by now."""
    serving = read_serving(home)
    if serving and serving.pid == os.getpid():
        os.unlink(home.state)


def read_serving(home: Home) -> Serving | None:
    """Return the process that serves the home, or None if it has ended."""
    try:
        with open(home.state, encoding="utf-8") as file:
            serving = Serving(**json.load(file))
    except (OSError, ValueError, TypeError):
        return None
    return serving if process_start(serving.pid) == serving.start else None


def heed_signals() -> None:
    """Replace ignored signals by a handler that does nothing, since child processes inherit ignored signals."""
    for number in IGNORED:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, _nothing)


def _nothing(number: int, frame: object) -> None:
    pass
