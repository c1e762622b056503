"""code-server, installed once by npm: its package, and of its native modules those that it needs to run."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.engines.environments import find_cache

VERSION = "4.100.3"  # the newest for the Node that Debian's users have
INSTALL = ("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund")
MODULES = ("@vscode/spdlog", "native-watchdog")  # whose native parts are built here


def have_code_server() -> Path:
    """The folder with the program `code-server`; what is missing for it is said aloud."""
    place = find_cache() / "engines" / f"code-server-{VERSION}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not place.is_dir():
            _install(place)
    return place / "node_modules" / ".bin"


def _install(place: Path) -> None:
    if not shutil.which("npm"):
        pytest.skip("there is no npm here, so that code-server can't be installed")
    unfinished = place.with_suffix(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    inner = unfinished / "node_modules" / "code-server" / "lib" / "vscode"
    steps: tuple[tuple[Path, tuple[str, ...]], ...] = (
        (unfinished, (*INSTALL, f"code-server@{VERSION}")),
        (inner, (*INSTALL, "--omit=dev")),
        (inner, ("npm", "rebuild", *MODULES)),
        (inner / "extensions", (*INSTALL, "--omit=dev")),
        (unfinished, ("npm", "rebuild", "argon2")),
    )
    for folder, words in steps:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            shutil.rmtree(unfinished, ignore_errors=True)
            pytest.skip(f"code-server can't be installed here: {done.stderr.strip()[-300:]}")
    unfinished.rename(place)
