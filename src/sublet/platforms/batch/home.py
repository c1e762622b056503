"""What a session printed, kept here once its results were fetched: on the system there is nothing of it any more."""

from __future__ import annotations

import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

from sublet.kernel.errors import NotFound

Stream = Literal["stdout", "stderr"]
Read = Callable[[Stream, int, int], Awaitable[bytes]]  # of a stream, from there on, so much
STREAMS: tuple[Stream, ...] = ("stdout", "stderr")
PIECE = 1 << 22
MARK = "fetched"  # this file says that all of it is here


class Fetched:
    """One session whose results are home."""

    def __init__(self, home: Path, platform: str, key: str) -> None:
        """It is below the platform's own directory."""
        self._platform, self._place = platform, home / "fetched" / key

    @property
    def there(self) -> bool:
        """Whether its results are home."""
        return (self._place / MARK).exists()

    async def take(self, read: Read) -> None:
        """Fetch what it printed."""
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        for stream in STREAMS:
            file = self._place / stream
            file.write_bytes(b"")
            while piece := await read(stream, file.stat().st_size, PIECE):
                with file.open("ab") as opened:
                    opened.write(piece)
        (self._place / MARK).touch()

    def output(self, stream: Stream, offset: int, limit: int) -> bytes:
        """Part of what it printed."""
        with (self._place / stream).open("rb") as file:
            file.seek(offset)
            return file.read(limit)

    def output_size(self, stream: Stream) -> int:
        """How much it printed."""
        return (self._place / stream).stat().st_size

    def check(self) -> None:
        """Say that its files are no longer on the system, if so."""
        if self.there:
            raise NotFound(
                f"The session's files were fetched, and are no longer on {self._platform}.",
                hint="They are where they were fetched to; with --keep they would have stayed there too.",
            )

    def forget(self) -> None:
        """Remove it."""
        shutil.rmtree(self._place, ignore_errors=True)
