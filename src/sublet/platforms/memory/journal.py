"""A file of lines that several processes append to, and each reads on where it stopped."""

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
    """What happened, in order: one JSON object a line."""

    def __init__(self, path: Path) -> None:
        """Know where it is; it is made by the first entry."""
        self.path = path
        self.read_to = 0
        self.file = 0  # the inode that was read: another one means that it was rewritten

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Nobody else writes meanwhile."""
        with lock(self.path.with_suffix(".lock")):
            yield

    def news(self) -> tuple[bool, Sequence[Entry]]:
        """Whether it was rewritten (then all of it is new), and the new entries; costs nothing when there are none."""
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
        """Append one entry, in one write; a line that a crash cut off is ended first."""
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
        """Begin anew with these entries."""
        part = self.path.with_suffix(".part")
        part.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        part.rename(self.path)
