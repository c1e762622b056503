"""Whatever keeps a job's time leaves nothing behind when the job ends, at whatever moment that is."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.platforms.batch.scripts import job_script, read_script

JOB = files("sublet.platforms.batch").joinpath("shell", "job.sh").read_text()
FUNCTIONS = "\n".join(re.findall(r"^(?:ends|nap|watch)\(\) \{.*?^\}", JOB, re.M | re.S))
GRACE = 70_000_000 + os.getpid()  # seconds of a nap that nobody else takes
WATCH = (
    f"dir=. warn=0 grace={GRACE} began=$(date +%s) duration=1\nsaid() {{ :; }}\nsignal_all() {{ :; }}\n{FUNCTIONS}\n"
)
WATCH += "began=$((began + 2 * grace))\nwatch"
ROUNDS = 30
STUBBORN = """\
session={session} duration=600 limit=660 warn=0 grace=1 connects= first=sh missing='""' local_scratch= places=
modules() {{ echo '"marie"' >"$dir/cancel"; }} # the last moment before the program is watched
links() {{ :; }}
environment() {{ :; }}
program() {{ exec sh -c "trap 'echo told' TERM; while :; do sleep 0.1; done"; }}
"""


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


def test_a_job_that_is_cancelled_as_it_starts_is_told_and_stopped(tmp_path: Path) -> None:
    for name in ("work", "data", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "nodes").write_text("here\n")
    (tmp_path / "program").write_text(STUBBORN.format(session=f"key-{uuid4().hex}"))
    (tmp_path / "job.sh").write_text(job_script("sublet.platforms.oar"))
    (tmp_path / "life.sh").write_text(read_script("life"))
    environment = {"PATH": os.environ["PATH"], "OAR_JOB_ID": "7", "OAR_NODE_FILE": str(tmp_path / "nodes")}
    subprocess.run(["sh", "job.sh", str(tmp_path)], cwd=tmp_path, env=environment, timeout=120, check=False)
    end = json.loads((tmp_path / "end.json").read_text())
    assert (end["kind"], end["by"]) == ("cancelled", "marie")
    assert end["code"] == 143 or "told\n" in (tmp_path / "stdout").read_text(), "it is not killed without a word"


def naps_of(pid: int) -> list[str]:
    """The naps that a process has begun, of all that it started."""
    names = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(OSError):  # it has just ended
            names.append((Path("/proc") / child / "comm").read_text().strip())
    return [name for name in names if name == "sleep"]
