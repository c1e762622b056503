"""What a platform that sessions share directories on may be asked of those."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class MeasuresPlaces(Protocol):
    """A platform that can say how large a directory is."""

    async def measure_place(self, path: str) -> int:
        """How many bytes the files below a directory there take."""
        ...
