"""Virtual environments for servers that are too large for Sublet's own: built once from a lock, and kept."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from testbed.box import CACHE

LOCKS = Path(__file__).parents[2] / "locks"


def find_cache() -> Path:
    """Where they are kept: beside the testbed's box, else in one's own cache."""
    try:
        CACHE.mkdir(parents=True, exist_ok=True)
    except OSError:
        return Path.home() / ".cache" / "sublet-testbed"
    return CACHE if os.access(CACHE, os.W_OK) else Path.home() / ".cache" / "sublet-testbed"


def have_environment(name: str) -> Path:
    """The environment of `locks/NAME.txt`, built unless it is there; what is missing for that is said aloud."""
    lock = LOCKS / f"{name}.txt"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256(lock.read_bytes() + python.encode()).hexdigest()[:12]
    place = find_cache() / "engines" / f"{name}-{digest}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not place.is_dir():
            _build(place, lock)
    return place


def _build(place: Path, lock: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    unfinished = place.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    options = ("--quiet", "--compile-bytecode", "--require-hashes", "--no-deps")
    for words in (
        [uv, "venv", "--quiet", "--relocatable", "--python", sys.executable, unfinished],
        [uv, "pip", "install", *options, "--python", unfinished / "bin" / "python", "-r", lock],
    ):
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode:
            shutil.rmtree(unfinished, ignore_errors=True)
            pytest.skip(f"{lock.name} can't be installed here: {done.stderr.strip()[-300:]}")
    unfinished.rename(place)
