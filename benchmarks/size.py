"""How much a benchmark does: all that its table is made of, or just enough to see that it works."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """A share of the whole benchmark."""

    share: float

    def of(self, whole: int, least: int = 1) -> int:
        """So many of `whole`, and never fewer than `least`."""
        return max(least, round(whole * self.share))

    @property
    def is_whole(self) -> bool:
        """Whether its figures may be published."""
        return self.share >= 1


WHOLE = Size(1.0)
SMALL = Size(0.01)  # for the tests: every line runs, and the figures mean nothing
