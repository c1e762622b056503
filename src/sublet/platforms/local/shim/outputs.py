"""What a job prints: two files that it appends to by itself, cut at a limit."""

from __future__ import annotations

import ctypes
import os

LITTLE = 64 * 1024  # bytes: with less than this a disk is full
ROOM = 16 * 1024  # bytes that are kept for what a job has to say on stderr when its disk is full
KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE
FULL = (b"No space left on device", b"Disk quota exceeded")
NO_MEMORY = (b"MemoryError", b"Cannot allocate memory", b"std::bad_alloc", b"OutOfMemoryError")


class Outputs:
    """The files `stdout` and `stderr` of a session directory."""

    def __init__(self, limit: int) -> None:
        """Open them for appending, and keep hold of them: the job may do what it likes with the names."""
        self.limit = limit
        self.cut = False
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        self.appended = [os.open(name, flags | os.O_APPEND, 0o600) for name in ("stdout", "stderr")]
        self.direct = [os.open(name, flags, 0o600) for name in ("stdout", "stderr")]
        self.kept = 0  # the end of the room that is kept in stderr
        self.keep_room()

    def keep_room(self) -> None:
        """Have room on the disk for the next words on stderr, where the file system can keep it."""
        size = os.fstat(self.direct[1]).st_size
        if size + ROOM // 2 > self.kept:
            self.kept = size + ROOM
            try:
                allocate = ctypes.CDLL(None).fallocate64
            except AttributeError:
                return
            allocate(self.direct[1], KEEP_SIZE, ctypes.c_int64(size), ctypes.c_int64(ROOM))  # or there is no room

    def look(self) -> None:
        """Cut what is beyond the limit; its last line then says so, and the job goes on."""
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
        """Whether there is no room now: that says nothing of why a job ended."""
        room = os.fstatvfs(self.direct[1])
        return room.f_bavail * room.f_frsize < LITTLE

    def last_words(self, about: tuple[bytes, ...]) -> str:
        """The last line about something at the end of stderr; empty if there is none."""
        size = os.fstat(self.direct[1]).st_size
        tail = os.pread(self.direct[1], 4096, max(0, size - 4096))
        lines = [line for line in tail.splitlines() if any(words in line for words in about)]
        return f"it said: {lines[-1].decode(errors='replace').strip()}" if lines else ""
