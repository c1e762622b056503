"""Exact cores and GPUs for each running job: none is given to two jobs while others are free."""

from __future__ import annotations

import fcntl
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def lock(file: Path) -> Iterator[None]:
    """Hold an exclusive file lock, which counts for all processes of this machine."""
    opened = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def least_used(wanted: int, there: Sequence[int], used: Counter[int]) -> list[int]:
    """Return `wanted` of these numbers, the least used first, or all of them if more are wanted."""
    return sorted(sorted(there, key=lambda core: (used[core], core))[:wanted])


def allot(running: Path, key: str, wanted: dict[str, int], there: Mapping[str, Sequence[int]]) -> dict[str, list[int]]:
    """Choose a job's cores and GPUs and record them in its file in `running`; an existing record is kept.

    Hold the lock.
    """
    used: dict[str, Counter[int]] = {kind: Counter() for kind in there}
    for name in os.listdir(running):
        given = read_mark(running / name)
        if name == key and given:
            return given
        for kind, numbers in given.items():
            used[kind].update(numbers)
    chosen = {kind: least_used(wanted[kind], there[kind], used[kind]) for kind in there}
    (running / key).write_text(json.dumps(chosen))
    return chosen


def read_mark(file: Path) -> dict[str, list[int]]:
    """Return the cores and GPUs that a running job was given; empty if the job has just ended."""
    try:
        given: dict[str, list[int]] = json.loads(file.read_bytes())
        return given
    except (OSError, ValueError):
        return {}
