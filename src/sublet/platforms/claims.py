"""Which process of a service brings something, so that another one can tell whether it still lives."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass

from sublet.platforms.local.shim.processes import boot_id, is_alive, start_time


@dataclass(frozen=True, slots=True)
class ServiceProcess:
    """The process that brings something, so that another on the same machine can see whether it still lives."""

    host: str
    pid: int
    start: int
    boot: str

    @classmethod
    def here(cls) -> ServiceProcess:
        """This one."""
        return cls(socket.gethostname(), os.getpid(), start_time(os.getpid()) or 0, boot_id())

    def __str__(self) -> str:
        """In one line."""
        return f"{self.host} {self.pid} {self.start} {self.boot}"

    @classmethod
    def is_dead(cls, text: str) -> bool:
        """Whether what is written so is a process of this machine that has ended; of others nobody knows."""
        host, *rest = text.split() or [""]
        if host != socket.gethostname() or len(rest) != 3:
            return False
        return not is_alive(int(rest[0]), int(rest[1]), rest[2])
