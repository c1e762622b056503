"""A version of what people may do: it grows when a role, a block or a second factor changes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Standings:
    """Whoever remembers what someone may do compares this, and looks again when it has grown."""

    version: int = 0

    def bump(self) -> None:
        """What someone may do has changed."""
        self.version += 1
