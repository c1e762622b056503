"""The output of a bag's tasks: to the files of a slot, then to one log. Travels with the job: standard library only."""

from __future__ import annotations

import os
import signal
from typing import Any

STREAMS = ("stdout", "stderr")


class OutputSlot:
    """A slot in which one task runs at a time, with two output files that are reused."""

    def __init__(self, name: str) -> None:
        """Open its files."""
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        self.files = [os.open(f"{name}.{stream}", flags, 0o600) for stream in STREAMS]
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self.actions = [(os.POSIX_SPAWN_DUP2, null, 0)]
        self.actions += [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(self.files, start=1)]

    def spawn(self, argv: tuple[str, ...], environment: dict[bytes, bytes]) -> int:
        """Start a task in this slot."""
        return os.posix_spawnp(
            argv[0],
            argv,
            environment,
            file_actions=self.actions,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),  # Python ignores these two, and programs would inherit that
        )

    def collect(self, logs: list[Log]) -> dict[str, Any]:
        """Move the task's output to the logs, and return where it is."""
        places = {}
        for stream, fd, log in zip(STREAMS, self.files, logs, strict=True):
            if size := os.fstat(fd).st_size:
                places[stream] = log.take(fd, size)
                os.ftruncate(fd, 0)
        return places


class Log:
    """The output of all tasks, one after another."""

    def __init__(self, path: str) -> None:
        """Open the log, to continue at its end."""
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.size = os.fstat(self.fd).st_size

    def take(self, source: int, size: int) -> list[int]:
        """Append `size` bytes of another file; return their offset and length."""
        start, done = self.size, 0
        while done < size and (piece := os.pread(source, min(size - done, 1 << 20), done)):
            write_all(self.fd, piece)
            done += len(piece)
        self.size += done
        return [start, done]

    def last_line(self, place: list[int]) -> str:
        """Return the last line of one piece, for messages."""
        offset, length = place
        tail = os.pread(self.fd, min(length, 500), offset + max(0, length - 500))
        lines = tail.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def write_all(fd: int, data: bytes) -> None:
    """Write all data, in as many calls as needed."""
    while data:
        data = data[os.write(fd, data) :]
