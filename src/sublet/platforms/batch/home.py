"""The output of a session whose results were fetched and whose files have been removed from the system."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

from sublet.kernel.errors import NotFound

Stream = Literal["stdout", "stderr"]
Read = Callable[[Stream, int, int], Awaitable[bytes]]  # (stream, offset, size) → bytes
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")
PIECE = 1 << 22
MARK = "fetched"  # this file marks that the output is complete


class Fetched:
    """The local copy of the output of one fetched session."""

    def __init__(self, home: Path, platform: str, key: str) -> None:
        """Set where the copy is kept, below the platform's own directory."""
        self._platform, self._place = platform, home / "fetched" / key

    @property
    def there(self) -> bool:
        """Whether the session's results were fetched."""
        return (self._place / MARK).exists()

    async def take(self, read: Read) -> None:
        """Fetch the session's output."""
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for stream in STREAMS:
            file = self._place / stream
            file.write_bytes(b"")
            while piece := await read(stream, file.stat().st_size, PIECE):
                with file.open("ab") as opened:
                    opened.write(piece)
        (self._place / MARK).touch()

    def output(self, stream: Stream, offset: int, limit: int) -> bytes:
        """Return part of the session's output."""
        with (self._place / stream).open("rb") as file:
            file.seek(offset)
            return file.read(limit)

    def output_size(self, stream: Stream) -> int:
        """Return the size of the session's output."""
        return (self._place / stream).stat().st_size

    def check(self) -> None:
        """Raise NotFound if the session's files were fetched and are no longer on the system."""
        if self.there:
            raise NotFound(
                f"The session's files were fetched, and are no longer on {self._platform}.",
                hint="They are where they were fetched to; with --keep they would have stayed there too.",
            )

    def forget(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self._place, ignore_errors=True)
