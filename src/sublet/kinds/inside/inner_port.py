"""Reaches a port in a container without network, from inside its namespace.

Travels with the job: standard library only.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import threading
from contextlib import suppress

CLONE_ANY = 0
PATIENCE = 20.0  # seconds for a connection on a loopback


class InnerPort:
    """Connections to a port on a container's loopback, made by a child process that joins its namespace.

    The child is forked while this process has one thread only, as joining a user namespace requires that.
    """

    def __init__(self) -> None:
        """Fork the process, which waits to be told the container."""
        self._lock = threading.Lock()
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._pid = os.fork()
        if not self._pid:
            self._ours.close()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            with suppress(OSError):  # the parent has ended
                serve_connections(theirs)
            os._exit(0)
        theirs.close()

    def connect(self, pid: int, port: int) -> socket.socket:
        """Return a connection to this port in the container; raise OSError if nothing listens."""
        with self._lock:
            self._ours.sendall(struct.pack("!II", pid, port))
            answer, descriptors, _, _ = socket.recv_fds(self._ours, 4, 1)
        if descriptors:
            return socket.socket(fileno=descriptors[0])
        code = struct.unpack("!I", answer)[0] if len(answer) == 4 else 0
        raise OSError(code, os.strerror(code) if code else "the container's network can't be entered")

    def close(self) -> None:
        """End the process."""
        self._ours.close()
        with suppress(ChildProcessError):
            os.waitpid(self._pid, 0)


def serve_connections(asked: socket.socket) -> None:
    """Make a connection for each request, inside the container's namespace."""
    inside = 0
    while len(question := asked.recv(8)) == 8:
        pid, port = struct.unpack("!II", question)
        try:
            if inside != pid:
                enter_network(pid)
                inside = pid
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
                connection.settimeout(None)
                socket.send_fds(asked, [struct.pack("!I", 0)], [connection.fileno()])
        except OSError as error:
            asked.sendall(struct.pack("!I", error.errno or 0))


def enter_network(pid: int) -> None:
    """Join the network namespace of a process; first its user namespace, if that differs from ours."""
    libc = ctypes.CDLL(None, use_errno=True)
    folder = f"/proc/{pid}/ns"
    names = ["net"] if is_same(f"{folder}/user", "/proc/self/ns/user") else ["user", "net"]
    opened = [os.open(f"{folder}/{name}", os.O_RDONLY | os.O_CLOEXEC) for name in names]
    try:
        for descriptor in opened:
            if libc.setns(descriptor, CLONE_ANY):
                code = ctypes.get_errno()
                raise OSError(code, os.strerror(code))
    finally:
        for descriptor in opened:
            os.close(descriptor)


def is_same(first: str, other: str) -> bool:
    """Whether two links lead to the same namespace."""
    return os.readlink(first) == os.readlink(other)
