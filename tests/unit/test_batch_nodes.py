"""A job of several nodes runs a program on each by a script, with the shell that its scheduler has between nodes."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from sublet.platforms.batch.scripts import nodes_script
from tests.serving import eventually

SHELLS = {  # what gets from node to node, as a stand-in on this machine: NODE, then a line or words
    "oar": ("oarsh", 'shift; exec sh -c "$*"'),
    "gridengine": ("qrsh", 'shift 2; exec sh -c "$*"'),
    "pbs": ("pbs_tmrsh", 'shift; exec "$@" </dev/null'),
    "lsf": ("blaunch", 'shift; exec "$@"'),
}


def start(place: Path, scheduler: str, *words: str) -> subprocess.Popen[bytes]:
    """A job of three nodes that runs words on each of them."""
    shell, body = SHELLS[scheduler]
    (place / "bin").mkdir()
    (place / "bin" / shell).write_text(f"#!/bin/sh\nunset GIVEN\n{body}\n")
    (place / "bin" / shell).chmod(0o755)
    (place / "nodes.sh").write_text(nodes_script(f"sublet.platforms.{scheduler}"))
    (place / "cores").write_text("n0\nn0\nn1\nn1\nn2\n")
    (place / "slots").write_text("n0 2 all.q@n0 UNDEFINED\nn1 2 all.q@n1 UNDEFINED\nn2 1 all.q@n2 UNDEFINED\n")
    job = {"OAR_NODE_FILE": str(place / "cores"), "PBS_NODEFILE": str(place / "cores")}
    job |= {"PE_HOSTFILE": str(place / "slots"), "LSB_MCPU_HOSTS": "n0 2 n1 2 n2 1", "GIVEN": 'it\'s "so"'}
    environment = {**os.environ, **job, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
    return subprocess.Popen(["sh", place / "nodes.sh", *words], cwd=place, env=environment)


@pytest.mark.parametrize("scheduler", SHELLS)
def test_a_program_runs_once_on_each_node_and_knows_which_it_is(tmp_path: Path, scheduler: str) -> None:
    line = 'echo "$GIVEN $1" >"$SUBLET_NODE_NAME"; exit "$SUBLET_NODE_NUMBER"'
    assert start(tmp_path, scheduler, "sh", "-c", line, "sh", "a 'b'").wait(30) == 2
    assert [(tmp_path / f"n{number}").read_text() for number in range(3)] == ["it's \"so\" a 'b'\n"] * 3
    assert not (tmp_path / "nodes.env").exists()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_what_runs_on_other_nodes_ends_with_it(tmp_path: Path, how: signal.Signals) -> None:
    wait = "while [ -e go ]; do sleep 0.1; done"
    line = f'trap "touch over.$SUBLET_NODE_NUMBER; exit" TERM; touch up.$SUBLET_NODE_NUMBER; {wait}'
    (tmp_path / "go").touch()
    job = start(tmp_path, "oar", "sh", "-c", line)
    eventually(lambda: len([*tmp_path.glob("up.*")]) == 3, "all of them")
    job.send_signal(how)
    others = {"over.1", "over.2"} | ({"over.0"} if how == signal.SIGTERM else set())
    eventually(lambda: {file.name for file in tmp_path.glob("over.*")} == others, "their ends")
    job.wait(30)
    (tmp_path / "go").unlink()  # what is left on the job's own node is its scheduler's to end
