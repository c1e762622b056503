"""The identity of a service's process, so that another process can check whether it is still alive."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from sublet.platforms.local.shim.processes import boot_id, is_alive, start_time


@dataclass(frozen=True, slots=True)
class ServiceProcess:
    """The service process that transfers something, so that another on the same machine can check that it is alive."""

    host: str
    pid: int
    start: int
    boot: str

    @classmethod
    def here(cls) -> ServiceProcess:
        """Return the identity of the current process."""
        return cls(socket.gethostname(), os.getpid(), start_time(os.getpid()) or 0, boot_id())

    def __str__(self) -> str:
        """Write the identity in one line, as `is_dead` reads it."""
        return f"{self.host} {self.pid} {self.start} {self.boot}"

    @classmethod
    def is_dead(cls, text: str) -> bool:
        """Whether this text names a process of this machine that has ended; False for processes of other machines."""
        host, *rest = text.split() or [""]
        if host != socket.gethostname() or len(rest) != 3:
            return False
        return not is_alive(int(rest[0]), int(rest[1]), rest[2])
