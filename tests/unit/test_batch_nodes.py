"""A job of several nodes runs a program on each by a script, with the shell that its scheduler has between nodes."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.platforms.batch.scripts import each_script, nodes_script, read_script
from tests.serving import eventually

SHELLS = {  # what gets from node to node, as a stand-in on this machine: NODE, then a line or words
    "oar": ("oarsh", 'shift; exec sh -c "$*"'),
    "gridengine": ("qrsh", 'shift 2; exec sh -c "$*"'),
    "pbs": ("pbs_tmrsh", 'shift; exec "$@" </dev/null'),
    "lsf": ("blaunch", 'shift; exec "$@"'),
}


def start(place: Path, scheduler: str, *words: str, script: str = "nodes.sh") -> subprocess.Popen[bytes]:
    """A job of three nodes that runs words on each of them."""
    shell, body = SHELLS[scheduler]
    (place / "bin").mkdir(exist_ok=True)
    (place / "bin" / shell).write_text(f"#!/bin/sh\nunset GIVEN\n{body}\n")
    (place / "bin" / shell).chmod(0o755)
    (place / "nodes.sh").write_text(nodes_script(f"sublet.platforms.{scheduler}"))
    (place / "each.sh").write_text(each_script())
    (place / "life.sh").write_text(read_script("life"))
    (place / "program").write_text("grace=2\n")
    (place / "cores").write_text("n0\nn0\nn1\nn1\nn2\n")
    (place / "slots").write_text("n0 2 all.q@n0 UNDEFINED\nn1 2 all.q@n1 UNDEFINED\nn2 1 all.q@n2 UNDEFINED\n")
    job = {"OAR_NODE_FILE": str(place / "cores"), "PBS_NODEFILE": str(place / "cores")}
    job |= {"PE_HOSTFILE": str(place / "slots"), "LSB_MCPU_HOSTS": "n0 2 n1 2 n2 1", "GIVEN": 'it\'s "so"'}
    job |= {"SUBLET_SESSION": str(uuid4()), "SUBLET_PART": "0", "TMPDIR": str(place)}
    environment = {**os.environ, **job, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
    return subprocess.Popen(["sh", place / script, *words], cwd=place, env=environment)


def runs(pid: int) -> bool:
    """Whether a process is there, and not only its number until someone has asked how it ended."""
    try:
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


@pytest.mark.parametrize("scheduler", SHELLS)
def test_a_program_runs_once_on_each_node_and_knows_which_it_is(tmp_path: Path, scheduler: str) -> None:
    line = 'echo "$GIVEN $1" >"$SUBLET_NODE_NAME"; exit "$SUBLET_NODE_NUMBER"'
    assert start(tmp_path, scheduler, "sh", "-c", line, "sh", "a 'b'").wait(30) == 2
    assert [(tmp_path / f"n{number}").read_text() for number in range(3)] == ["it's \"so\" a 'b'\n"] * 3
    assert not [*tmp_path.glob("nodes.??????")]


@pytest.mark.parametrize("scheduler", SHELLS)
def test_a_program_for_each_node_is_told_where_the_first_is_and_the_first_that_fails_ends_all(
    tmp_path: Path, scheduler: str
) -> None:
    greet = 'echo "$SUBLET_FIRST_NODE $1" >"$SUBLET_NODE_NAME"'
    until_all = "until [ -e n0 ] && [ -e n1 ] && [ -e n2 ]; do sleep 0.1; done"
    end = '[ "$SUBLET_NODE_NUMBER" = 1 ] && exit 3; trap "" TERM; while [ -e go ]; do sleep 0.1; done'
    (tmp_path / "go").touch()
    job = start(tmp_path, scheduler, "sh", "-c", f"{greet}; {until_all}; {end}", "sh", "it's", script="each.sh")
    assert job.wait(60) == 3, "the code of the first that failed, not of those that were ended then"
    (tmp_path / "go").unlink()  # what did not end there would be its scheduler's to end
    assert [(tmp_path / f"n{number}").read_text() for number in range(3)] == ["n0 it's\n"] * 3
    job = start(tmp_path, scheduler, "sh", "-c", f"{until_all}; exit 0", script="each.sh")
    assert job.wait(60) == 0
    assert not [*tmp_path.glob("nodes.??????")]


def test_of_a_program_for_each_node_nothing_is_left_on_other_nodes_where_they_are_reached_by_ssh(
    tmp_path: Path,
) -> None:
    behind = "trap 'exit 0' TERM; (trap '' TERM; exec sleep 600) & echo $! >left.$SUBLET_NODE_NUMBER; "
    until_all = "until [ -s left.0 ] && [ -s left.1 ] && [ -s left.2 ]; do sleep 0.1; done; "
    end = '[ "$SUBLET_NODE_NUMBER" = 0 ] && exit 4; while :; do sleep 0.1; done'
    assert start(tmp_path, "oar", "sh", "-c", behind + until_all + end, script="each.sh").wait(60) == 4
    first, *others = (int((tmp_path / f"left.{number}").read_text()) for number in range(3))
    os.kill(first, signal.SIGKILL)  # what is left on the first node is job.sh's to end
    assert not [pid for pid in others if runs(pid)]


def test_a_program_for_each_node_that_is_stopped_has_its_time_to_end_on_each(tmp_path: Path) -> None:
    last = 'trap "sleep 0.5; echo over >over.$SUBLET_NODE_NUMBER; exit" TERM; touch up.$SUBLET_NODE_NUMBER; '
    job = start(tmp_path, "oar", "sh", "-c", last + "while :; do sleep 0.1; done", script="each.sh")
    eventually(lambda: len([*tmp_path.glob("up.*")]) == 3, "all of them")
    job.send_signal(signal.SIGTERM)
    job.wait(60)
    assert sorted(file.name for file in tmp_path.glob("over.*")) == ["over.0", "over.1", "over.2"]


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
