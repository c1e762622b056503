"""What a test says of itself by its markers: what is real in it, and which command runs it."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]


@cache
def markers_of(path: str, test: str = "") -> frozenset[str]:
    """The names of the markers of a test, with those of its file; or of a file, those that all of its tests have."""
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    of_file = _names(getattr(module, "pytestmark", ()))
    if test:
        return of_file | _names(getattr(getattr(module, test), "pytestmark", ()))
    tests = [value for name, value in vars(module).items() if name.startswith("test_") and callable(value)]
    own = [_names(getattr(one, "pytestmark", ())) for one in tests]
    return of_file | (frozenset.intersection(*own) if own else frozenset())


def _names(marks: object) -> frozenset[str]:
    every = marks if isinstance(marks, Iterable) else (marks,)
    return frozenset(getattr(mark, "name", "") for mark in every)


def tried_on(path: str, test: str) -> str:
    """What a table says of a test: on what it is tried, and by which command."""
    markers = markers_of(path, test)
    real = " and ".join(name for mark, name in (("htcondor", "HTCondor"), ("slurm", "Slurm")) if mark in markers)
    ring = Path(path).parts[1]
    command = other_command(path, test) or "test"
    return f"{f'real {real}' if real else f'neither: {ring} test'}, `make {command}`"


def other_command(path: str, test: str = "") -> str:
    """Which command but `make test` runs it: soak, engines, or none."""
    markers = markers_of(path, test)
    return next((mark for mark in ("soak", "engines") if mark in markers), "")
