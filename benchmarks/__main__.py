"""Run all benchmarks but P12, or those that are named: `python -m benchmarks p12`; `--write` publishes."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import traceback

import benchmarks
from benchmarks.page import PAGE, make_stamp, replace_section
from benchmarks.row import write_table
from benchmarks.size import SMALL, WHOLE, Size

LONG = frozenset({"p12"})  # a quarter of an hour: only when it is named


def list_benchmarks() -> list[str]:
    """The benchmarks there are, in order: modules whose name is p and a number."""
    names = [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name[0] == "p" and m.name[1:].isdigit()]
    return sorted(names, key=lambda name: int(name[1:]))


def list_short() -> list[str]:
    """Those that run when none is named."""
    return [name for name in list_benchmarks() if name not in LONG]


def run_benchmark(name: str, size: Size, write: bool) -> bool:
    """Run one, print its table and, if asked, publish it; False where it broke, and the others go on."""
    module = importlib.import_module(f"benchmarks.{name}")
    print(f"\n{name.upper()}  {module.NAME}", flush=True)
    try:
        rows = module.run(size)
    except Exception:  # one that breaks must not cost the tables of the others
        traceback.print_exc()
        return False
    print(write_table(rows), flush=True)
    if write:
        PAGE.write_text(replace_section(PAGE.read_text(), name, module.NAME, make_stamp(name), rows))
    return True


def main() -> int:
    """Run and print, one table for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *list_benchmarks()], metavar="NAME", help="such as p1")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    parser.add_argument("--small", action="store_true", help="a hundredth of each: to see that they work")
    asked = parser.parse_args()
    if asked.write and asked.small:
        parser.error("the figures of a small run mean nothing and are not published")
    size = SMALL if asked.small else WHOLE
    broken = [name for name in asked.names or list_short() if not run_benchmark(name, size, asked.write)]
    if broken:
        print(f"\nerror: {', '.join(broken)} broke; see above.", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
