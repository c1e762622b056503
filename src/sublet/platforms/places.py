"""What can be asked about the directories that sessions share on a platform."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class MeasuresPlaces(Protocol):
    """A platform that can measure the size of a directory."""

    async def measure_place(self, path: str) -> int:
        """Return the total size in bytes of the files below a directory."""
        ...
