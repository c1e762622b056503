"""A version number of people's standing: it grows when a role, block or second factor changes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Standings:
    """The version to compare with cached standings, which are stale once it has grown."""

    version: int = 0

    def bump(self) -> None:
        """Invalidate cached standings."""
        self.version += 1
