"""One line of the benchmarks' table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """What was measured, the figure, and the goal that it is held against."""

    what: str
    figure: str  # a ratio where there is one, with its unit: "3.1 ×", "42 µs"
    goal: str = ""  # in words: "≤ 5 ×"; empty when it is only there to be seen
    met: bool | None = None  # None when there is no goal
