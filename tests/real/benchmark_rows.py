"""Run a benchmark at a hundredth of its size and print its rows as JSON: `python -m tests.real.benchmark_rows p1`."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import astuple

from benchmarks.size import SMALL

if __name__ == "__main__":
    rows = importlib.import_module(f"benchmarks.{sys.argv[1]}").run(SMALL)
    print(json.dumps([astuple(row) for row in rows]))
