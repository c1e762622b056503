"""The syntax trees of Sublet's source, parsed once for all tests of a worker that read them."""

from __future__ import annotations

import ast
import gc
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src"
PACKAGE = ROOT / "sublet"


@cache
def parse_source() -> dict[Path, ast.Module]:
    """The tree of each file, in the order of their paths. They are a million objects, so they are never collected."""
    was_on = gc.isenabled()
    gc.disable()
    trees = {file: ast.parse(file.read_bytes()) for file in sorted(ROOT.rglob("*.py"))}
    gc.freeze()
    if was_on:
        gc.enable()
    return trees
