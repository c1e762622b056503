"""Ports for servers that tests start."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

RANGE = range(20_000, 30_000)  # outgoing connections have others, and would take a port before its server does


def free_port(host: str = "127.0.0.1") -> int:
    """Return a port that nobody listens on."""
    for port in random.sample(RANGE, 100):
        with suppress(OSError), socket.create_server((host, port)):
            return port
    raise OSError(f"no port of {RANGE.start} to {RANGE.stop - 1} is free")
