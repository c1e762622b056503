"""A passage into a machine of a testbed: a port of its loopback that leads to one of this machine's."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from testbed.network import NAMESPACES

from tests.sites import Site

CLONE_NEWNET = 0x40000000
PIECE = 1 << 16


@contextmanager
def passage(site: Site, machine: str, port: int) -> Iterator[None]:
    """While this lasts, 127.0.0.1:PORT of that machine is this machine's."""
    listener = _listen_inside(site, machine, port)
    threading.Thread(target=_serve, args=(listener, port), daemon=True).start()
    try:
        yield
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _listen_inside(site: Site, machine: str, port: int) -> socket.socket:
    """A socket that belongs to the machine's network, made by a thread that goes there and ends."""
    made: list[socket.socket | Exception] = []

    def make() -> None:
        try:
            _enter_network(str(NAMESPACES / site.plan.network(machine)))
            made.append(socket.create_server(("127.0.0.1", port)))
        except OSError as error:
            made.append(error)

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    (result,) = made
    if isinstance(result, Exception):
        raise result
    return result


def _enter_network(path: str) -> None:
    namespace = os.open(path, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"can't enter {path}")
    finally:
        os.close(namespace)


def _serve(listener: socket.socket, port: int) -> None:
    with suppress(OSError):  # it is closed
        while True:
            near, _ = listener.accept()
            far = socket.create_connection(("127.0.0.1", port))
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=_carry, args=(one, other), daemon=True).start()


def _carry(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while piece := one.recv(PIECE):
            other.sendall(piece)
        other.shutdown(socket.SHUT_WR)
