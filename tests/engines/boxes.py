"""Debian in directories, each with a server that is too large or too old for this machine: built once, and kept."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from testbed.box import OPTIONS, mirror
from testbed.plan import Skip

from tests.engines.environments import find_cache

SUITE, NEWER_SUITE = "bookworm", "sid"  # only the newer one has HTCondor, for nodes that annexes lease
BASE = ("openssh-server", "openssh-client", "iproute2", "procps", "hostname", "mount", "python3", "tzdata")


def have_box(name: str, packages: Sequence[str], before: str = "", suite: str = SUITE) -> Path:
    """A box with these packages, built unless it is there; `before` is run in it before they are installed.

    What is missing for that is said aloud.
    """
    wanted = [*BASE, *packages]
    digest = hashlib.sha256("\n".join([suite, before, *wanted]).encode()).hexdigest()[:12]
    place = find_cache() / "engines" / f"box-{name}-{digest}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not place.is_dir():
            _build(place, wanted, before, suite)
    return place


def _build(place: Path, packages: Sequence[str], before: str, suite: str) -> None:
    if os.geteuid() != 0 or not shutil.which("mmdebstrap"):
        pytest.skip("a box needs root and mmdebstrap (scripts/system-packages installs what is needed)")
    unfinished = place.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    hooks = [f'--essential-hook=chroot "$1" sh -c {before!r}'] if before else []
    try:
        source = mirror()
    except Skip as reason:
        pytest.skip(str(reason))
    words = ["mmdebstrap", "--variant=apt", "--mode=root", *OPTIONS, *hooks, f"--include={','.join(packages)}"]
    done = subprocess.run(["nice", "-n5", *words, suite, unfinished, source], capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(unfinished, ignore_errors=True)
        pytest.skip(f"the box {place.name} can't be built here: {done.stderr.strip()[-500:]}")
    unfinished.rename(place)
