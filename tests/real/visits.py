"""Visits to a server that a session has: by HTTP, as a browser or a program would."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable


def wait_for(done: Callable[[], bool], seconds: float = 30) -> None:
    """Wait until something is so; it has a deadline."""
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def answers(port: int) -> bool:
    """Whether a web server answers there; a port that only listens may be one that a program tries and closes again."""
    try:
        get(port, "/")
    except (OSError, http.client.HTTPException):
        return False
    return True


def get(port: int, path: str, headers: dict[str, str] | None = None) -> tuple[int, dict[str, str], bytes]:
    """Ask for a page: status, headers, body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers=headers or {})
    answer = connection.getresponse()
    try:
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()
