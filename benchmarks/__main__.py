"""Run all benchmarks, or those that are named: `python -m benchmarks p1 p4`."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

import benchmarks
from benchmarks.row import Row

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
MARK = "<!-- Below: written by `python -m benchmarks --write` -->"


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
    """Run and print, one table for each; with `--write`, also into the page."""
    words = sys.argv[1:]
    page = PAGE.read_text().partition(MARK)[0] + MARK if "--write" in words else ""
    for name in modules([word for word in words if word != "--write"]):
        module = importlib.import_module(f"benchmarks.{name}")
        print(f"\n{name.upper()}  {module.NAME}", flush=True)
        rows = module.run()
        print(table(rows), flush=True)
        page += f"\n\n## {name.upper()}: {module.NAME}\n\n{markdown(rows)}"
    if "--write" in words:
        PAGE.write_text(page + "\n")


def markdown(rows: list[Row]) -> str:
    """The rows as a table of a page."""
    words = {None: "", True: "met", False: "**not met**"}
    lines = [f"| {row.what} | {row.figure} | {row.goal} | {words[row.met]} |" for row in rows]
    return "\n".join(["| what | figure | goal | |", "| --- | --- | --- | --- |", *lines])


if __name__ == "__main__":
    main()
