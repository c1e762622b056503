"""A file of lines that several processes append to, and that each reads on from where it stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sublet.platforms.cores import lock

Entry = Mapping[str, Any]


class Journal:
    """Events in order: one JSON object per line."""

    def __init__(self, path: Path) -> None:
        """Set the path; the first entry creates the file."""
        self.path = path
        self.read_to = 0
        self.file = 0  # the inode that was read: another one means that the file was rewritten

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes from writing meanwhile."""
        with lock(self.path.with_suffix(".lock")):
            yield

    def news(self) -> tuple[bool, Sequence[Entry]]:
        """Return whether the journal was rewritten (then all of it is new), and the new entries.

        Cheap if there are none.
        """
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return False, ()
        anew = status.st_ino != self.file
        if anew:
            self.file, self.read_to = status.st_ino, 0
        if status.st_size == self.read_to:
            return anew, ()
        with self.path.open("rb") as file:
            file.seek(self.read_to)
            text = file.read()
        whole = text[: text.rfind(b"\n") + 1]  # the last line may still be being written
        self.read_to += len(whole)
        return anew, [json.loads(line) for line in whole.splitlines()]

    def add(self, entry: Entry) -> None:
        """Append one entry in one write; a line that a crash cut off is removed first."""
        line = json.dumps(entry).encode() + b"\n"
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                os.ftruncate(file, self.read_to)
            os.write(file, line)
        finally:
            os.close(file)

    def rewrite(self, entries: Sequence[Entry]) -> None:
        """Replace the journal by these entries."""
        part = self.path.with_suffix(".part")
        part.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        part.rename(self.path)
