"""The benchmarks' tables, and a line of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """What was measured, the figure, and the goal that it is held against."""

    what: str
    figure: str  # a ratio where there is one, with its unit: "3.1 ×", "42 µs"
    goal: str = ""  # in words: "≤ 5 ×"; empty when it is only there to be seen
    met: bool | None = None  # None when there is no goal


def write_table(rows: Sequence[Row]) -> str:
    """The rows in columns."""
    words = {None: "", True: "met", False: "NOT MET"}
    cells = [(row.what, row.figure, row.goal, words[row.met]) for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
