"""The TCP port of a personal service, which stays the same after a restart so that open pages keep working."""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import dataclass

import structlog

from sublet.kernel.errors import NotHere
from sublet.kernel.home import Home

log = structlog.get_logger()
HIGHEST = 65_535


@dataclass(frozen=True, slots=True)
class Listening:
    """A bound socket; `moved_from` is the port of the last start if another program has taken it since."""

    socket: socket.socket
    moved_from: int = 0


def listen_tcp(host: str, port: int, home: Home | None = None) -> Listening:
    """Bind this port or, if it is 0, the home's last port or else a free one; without a home no port is remembered."""
    before = read_port(home) if home and not port else 0
    listener = _try_port(host, before) if before else None
    moved_from = before if before and listener is None else 0
    listener = listener or _bind(host, port)
    if moved_from:
        log.warning("service.port-taken", port=moved_from, now=listener.getsockname()[1])
    if home and not port:
        _remember_port(home, listener.getsockname()[1])
    return Listening(listener, moved_from)


def read_port(home: Home) -> int:
    """Return the last port of a home's service, or 0 if it is unknown."""
    try:
        with open(home.port, encoding="ascii") as file:
            text = file.read(16).strip()
    except (OSError, UnicodeDecodeError):
        return 0
    return int(text) if text.isdecimal() and 0 < int(text) <= HIGHEST else 0


def _remember_port(home: Home, port: int) -> None:
    part = f"{home.port}.{os.getpid()}"
    with open(part, "w", encoding="ascii") as file:
        file.write(f"{port}\n")
    os.replace(part, home.port)


def _try_port(host: str, port: int) -> socket.socket | None:
    """Bind and listen at once, so that no other program can take the port meanwhile; None if it is taken."""
    try:
        listener = _open(host, port)
    except OSError:
        return None
    try:
        listener.listen(2048)
    except OSError:
        listener.close()
        return None
    return listener


def _bind(host: str, port: int) -> socket.socket:
    try:
        return _open(host, port)
    except OSError as error:
        why = f"it can't listen on {host}, port {port}: {error.strerror}"
        raise NotHere(
            why=why, advice="Choose another: `port` and `host` in sublet.toml, or --port and --host."
        ) from error


def _open(host: str, port: int) -> socket.socket:
    # The protocol is given because asyncio sets TCP_NODELAY only on sockets that were created with it; without it each
    # answer takes 40 ms longer.
    addresses = socket.getaddrinfo(host, port, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = addresses[0]
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket(family, kind, protocol))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        stack.pop_all()
    return listener
