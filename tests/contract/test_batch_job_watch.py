"""Whatever keeps a job's time leaves nothing behind when the job ends, at whatever moment that is."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import pytest

JOB = files("sublet.platforms.batch").joinpath("shell", "job.sh").read_text()
FUNCTIONS = "\n".join(re.findall(r"^(?:ends|nap|watch)\(\) \{.*?^\}", JOB, re.M | re.S))
GRACE = 7_654_321  # seconds of a nap that nobody else takes
WATCH = (
    f"dir=. warn=0 grace={GRACE} began=$(date +%s) duration=1\nsaid() {{ :; }}\nsignal_all() {{ :; }}\n{FUNCTIONS}\n"
)
WATCH += "began=$((began + 2 * grace))\nwatch"
ROUNDS = 30


def test_no_nap_outlives_the_job_that_it_was_for(tmp_path: Path) -> None:
    if not (shell := shutil.which("dash")):
        pytest.skip("dash is not installed")
    (tmp_path / "ran").mkdir()
    for number in range(ROUNDS):  # some meet the second nap while it is being started
        watcher = subprocess.Popen([shell, "-c", WATCH], cwd=tmp_path, stdout=subprocess.DEVNULL)
        while not naps_of(watcher.pid):
            time.sleep(0.005)
        watcher.send_signal(signal.SIGTERM)
        time.sleep(number * 0.0002)
        watcher.send_signal(signal.SIGUSR1)
        watcher.wait(30)
    naps = subprocess.run(["pgrep", "-fx", f"sleep {GRACE}"], capture_output=True, text=True).stdout.split()
    for nap in naps:
        os.kill(int(nap), signal.SIGKILL)
    assert naps == []


def naps_of(pid: int) -> list[str]:
    """The naps that a process has begun, of all that it started."""
    names = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(OSError):  # it has just ended
            names.append((Path("/proc") / child / "comm").read_text().strip())
    return [name for name in names if name == "sleep"]
