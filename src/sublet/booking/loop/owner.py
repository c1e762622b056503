"""The owner of claimed work: a process, described so that others can tell when it is dead."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that claims work, by host, pid and start time, so that others can tell when it is dead."""

    host: str
    pid: int
    began: str

    def __str__(self) -> str:
        return f"{self.host}/{self.pid}/{self.began}"

    @classmethod
    def here(cls) -> Owner:
        """Return this process."""
        return cls(socket.gethostname(), os.getpid(), _began(os.getpid()))

    @classmethod
    def read(cls, text: str) -> Owner:
        """Parse the text that a process wrote into its claims."""
        host, pid, began = [*text.split("/"), "", ""][:3]
        return cls(host, int(pid) if pid.isdigit() else 0, began)

    def lives(self) -> bool:
        """Whether the process still runs, as far as can be known from this host."""
        return self.host != socket.gethostname() or _began(self.pid) == self.began


def _began(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):  # other errors don't mean that it is gone
        return ""
