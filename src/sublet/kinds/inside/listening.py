"""Waits for a server of this session to listen, and connects to it. Travels with the job: standard library only."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Callable

from sublet.kinds.inside import gate

Connect = Callable[[], socket.socket]
LISTENING = "0A"
TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def wait_for_server(find: Callable[[], Connect | None], process: subprocess.Popen[bytes]) -> Connect | None:
    """Return how to connect to a server once it listens; None if its process ended before."""
    connect: Connect | None = None
    while process.poll() is None:
        connect = connect or find()
        if connect and gate.listens(connect):
            return connect
        time.sleep(0.1)
    return None


def connect_to_socket(path: str) -> socket.socket:
    """Return a connection to a Unix socket of this session."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(gate.PATIENCE)
        connection.connect(path)
    except OSError:
        connection.close()
        raise
    return connection


def connect_to_port(port: int) -> socket.socket:
    """Return a connection to a local port on which our own user listens, as another user could have taken it."""
    if os.getuid() not in find_listeners(port):
        raise ConnectionRefusedError(f"nobody of this session listens on port {port}")
    for host in ("127.0.0.1", "::1"):
        try:
            return socket.create_connection((host, port), gate.PATIENCE)
        except OSError as error:
            last = error
    raise last


def find_listeners(port: int) -> set[int]:
    """Return the ids of the users who listen on a local port."""
    users: set[int] = set()
    for table in TABLES:
        try:
            with open(table, encoding="ascii") as file:
                rows = [line.split() for line in file][1:]
        except OSError:
            continue
        users |= {int(row[7]) for row in rows if row[1].endswith(f":{port:04X}") and row[3] == LISTENING}
    return users
