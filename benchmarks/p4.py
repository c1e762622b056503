"""P4: how fast the command line starts, beside a Python that does nothing, and beside peers that happen to be here."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.row import Row
from benchmarks.size import WHOLE, Size

NAME = "start of the command line, beside a bare Python"

ROUNDS = 25  # the commands take turns, so that a slow moment of the machine hits all of them
GOAL = 8.0
SUBLET = str(Path(sys.executable).parent / "sublet")
BARE = (sys.executable, "-c", "pass")
COMMANDS: Mapping[str, Sequence[str]] = {"sublet --help": (SUBLET, "--help"), "sublet ps": (SUBLET, "ps")}
PEERS: Mapping[str, Sequence[str]] = {
    "import click alone": (sys.executable, "-c", "import click"),
    "import httpx2 alone": (sys.executable, "-c", "import httpx2"),
    "sbatch --version": ("sbatch", "--version"),
    "htcondor --help": ("htcondor", "--help"),
}


def run(size: Size = WHOLE) -> list[Row]:
    """Measure, with compiled bytecode as an installer leaves it, and a service that has something to list."""
    with service() as environment:
        peers = {name: words for name, words in PEERS.items() if shutil.which(words[0]) and works(words)}
        seconds = measured({"bare": BARE, **COMMANDS, **peers}, environment, size.of(ROUNDS))
    bare = seconds.pop("bare")
    rows = [Row("python -c pass", f"{bare * 1000:.1f} ms")]
    for name, took in seconds.items():
        ratio = took / bare
        held = name in COMMANDS
        rows.append(Row(name, f"{ratio:.1f} ×", f"≤ {GOAL:.0f} ×" if held else "", ratio <= GOAL if held else None))
    return rows


def works(words: Sequence[str]) -> bool:
    """Whether a peer runs here at all: some need a configuration even to say their version."""
    return subprocess.run(words, capture_output=True).returncode == 0


def measured(commands: Mapping[str, Sequence[str]], environment: Mapping[str, str], rounds: int) -> dict[str, float]:
    """The median seconds of each."""
    took: dict[str, list[float]] = {name: [] for name in commands}
    for words in commands.values():
        timed(words, environment)  # once for the caches
    for _ in range(rounds):
        for name, words in commands.items():
            took[name].append(timed(words, environment))
    return {name: statistics.median(times) for name, times in took.items()}


def timed(words: Sequence[str], environment: Mapping[str, str]) -> float:
    """The seconds that a command takes from start to end."""
    begin = time.perf_counter()
    subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


@contextmanager
def service() -> Iterator[dict[str, str]]:
    """A personal service in a home of its own, with one session that has ended; gives the environment to use it."""
    with tempfile.TemporaryDirectory(prefix="sublet-p4-") as home:
        environment = {**os.environ, "SUBLET_HOME": home}
        for name in ("SUBLET_URL", "PYTHONDONTWRITEBYTECODE"):
            environment.pop(name, None)
        subprocess.run([SUBLET, "run", "--quiet", "--", "true"], env=environment, check=True)
        try:
            yield environment
        finally:
            subprocess.run([SUBLET, "down"], env=environment, check=True, stdout=subprocess.DEVNULL)
