"""Run all benchmarks, or those that are named: `python -m benchmarks p1 p4`."""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks
from benchmarks.row import Row


def modules(wanted: list[str]) -> list[str]:
    """The benchmarks there are, in order: modules whose name is p and a number."""
    found = [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name[0] == "p" and m.name[1:].isdigit()]
    return sorted((name for name in found if not wanted or name in wanted), key=lambda name: int(name[1:]))


def table(rows: list[Row]) -> str:
    """The rows in columns."""
    words = {None: "", True: "met", False: "NOT MET"}
    cells = [(row.what, row.figure, row.goal, words[row.met]) for row in rows]
    widths = [max(len(row[column]) for row in cells) for column in range(4)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)


def main() -> None:
    """Run and print, one table for each."""
    for name in modules(sys.argv[1:]):
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n{name.upper()}  {module.NAME}", flush=True)
        print(table(module.run()), flush=True)


if __name__ == "__main__":
    main()
