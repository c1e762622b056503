"""Where an interactive job listens: a loopback port or a Unix socket that it was given."""

from __future__ import annotations

import os
from socket import AF_INET, SOCK_STREAM, socket

LISTENING = "0A"


def free_port() -> int:
    """Return a free loopback port."""
    with socket(AF_INET, SOCK_STREAM) as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def _port_is_ours(port: int) -> bool:
    """Whether this user listens on a port: another user could have been quicker, and must get no connections."""
    for name in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(name, encoding="ascii") as file:
                rows = [line.split() for line in file][1:]
        except OSError:
            continue
        if any(
            row[1].endswith(f":{port:04X}") and row[3] == LISTENING and int(row[7]) in (os.getuid(), 0) for row in rows
        ):
            return True
    return False


def _socket_listens(path: str) -> bool:
    with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as file:
        rows = [line.split(maxsplit=7) for line in file]
    return any(len(row) == 8 and row[7].rstrip("\n") == path and row[3] == "00010000" for row in rows)


def location(port: int, path: str) -> str:
    """Return where the job can be reached now; empty while it can't."""
    if path and os.path.exists(path) and _socket_listens(path):
        return f"unix:{path}"
    return f"http://127.0.0.1:{port}" if _port_is_ours(port) else ""
