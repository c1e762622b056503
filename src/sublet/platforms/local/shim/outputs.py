"""A job's output: two files that it appends to by itself, cut at a limit."""

from __future__ import annotations

import ctypes
import os

LITTLE = 64 * 1024  # bytes: a disk with less than this is full
ROOM = 16 * 1024  # bytes reserved for a job's messages on stderr when its disk is full
KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE
FULL = (b"No space left on device", b"Disk quota exceeded")
NO_MEMORY = (b"MemoryError", b"Cannot allocate memory", b"std::bad_alloc", b"OutOfMemoryError")


class Outputs:
    """The files `stdout` and `stderr` of a session directory."""

    def __init__(self, limit: int) -> None:
        """Open the files for appending and keep them open, whatever the job does with their names."""
        self.limit = limit
        self.cut = False
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self.appended = [os.open(name, flags | os.O_APPEND, 0o600) for name in ("stdout", "stderr")]
        self.direct = [os.open(name, flags, 0o600) for name in ("stdout", "stderr")]
        self.kept = 0  # the end of the reserved space in stderr
        self.keep_room()

    def keep_room(self) -> None:
        """Reserve disk space for the next messages on stderr, where the file system supports it."""
        size = os.fstat(self.direct[1]).st_size
        if size + ROOM // 2 > self.kept:
            self.kept = size + ROOM
            try:
                allocate = ctypes.CDLL(None).fallocate64
            except AttributeError:
                return
            allocate(self.direct[1], KEEP_SIZE, ctypes.c_int64(size), ctypes.c_int64(ROOM))  # may fail on a full disk

    def look(self) -> None:
        """Cut the output at the limit; its last line then says so, and the job continues."""
        self.keep_room()
        note = f"\nsublet: what it printed beyond {self.limit} bytes was dropped\n".encode()
        for file in self.direct:
            if os.fstat(file).st_size > self.limit:
                os.pwrite(file, note, max(0, self.limit - len(note)))
                os.ftruncate(file, self.limit)
                self.cut = True

    def say(self, line: str) -> None:
        """Add a line of the shim's own to stderr."""
        try:
            os.write(self.appended[1], f"sublet: {line}\n".encode())
        except OSError:
            pass  # a full disk: the file `warning` or the end says it too

    def is_disk_full(self) -> bool:
        """Whether the disk is full now, which doesn't explain why a job ended."""
        room = os.fstatvfs(self.direct[1])
        return room.f_bavail * room.f_frsize < LITTLE

    def last_words(self, about: tuple[bytes, ...]) -> str:
        """Return the last line at the end of stderr that contains one of these texts; empty if there is none."""
        size = os.fstat(self.direct[1]).st_size
        tail = os.pread(self.direct[1], 4096, max(0, size - 4096))
        lines = [line for line in tail.splitlines() if any(words in line for words in about)]
        return f"it said: {lines[-1].decode(errors='replace').strip()}" if lines else ""
