"""What the shim and the platform agree on about processes, cores and files."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from sublet.platforms.cores import allot, least_used
from sublet.platforms.local.shim.cgroups import ControlGroup
from sublet.platforms.local.shim.mounts import link
from sublet.platforms.local.shim.outputs import FULL, Outputs
from sublet.platforms.local.shim.processes import (
    boot_id,
    descendants,
    find_marked,
    is_alive,
    proportional,
    resident,
    start_time,
)
from tests.serving import eventually


def test_a_process_is_known_by_its_pid_and_its_start() -> None:
    me = os.getpid()
    start = start_time(me)
    assert start is not None
    assert is_alive(me, start, boot_id())
    assert not is_alive(me, start + 1, boot_id())
    assert not is_alive(me, start, "another boot")


def test_what_a_service_ignores_is_not_ignored_by_what_it_starts() -> None:
    program = (
        "import os, signal, subprocess; from sublet.kernel.serving import heed_signals; heed_signals();"
        "os.kill(os.getpid(), signal.SIGHUP); subprocess.run(['sh', '-c', 'kill -HUP $$'], check=True)"
    )
    started = ["sh", "-c", 'trap "" HUP QUIT; exec "$0" -c "$1"', sys.executable, program]
    said = subprocess.run(started, capture_output=True, text=True, check=False)
    assert "died with <Signals.SIGHUP" in said.stderr, said


def test_a_process_that_is_dead_but_not_buried_is_gone() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert start_time(process.pid) is None
    process.wait()
    assert start_time(process.pid) is None


def test_descendants_and_marks_find_a_child_of_a_child() -> None:
    word = f"SUBLET_SESSION=test-{os.getpid()}"
    argv = ["sh", "-c", "sleep 60 & echo $!; wait"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env={**os.environ, **dict([word.split("=")])}) as process:
        assert process.stdout
        grandchild = int(process.stdout.readline())
        assert {process.pid, grandchild} <= set(descendants(os.getpid()))
        eventually(lambda: {process.pid, grandchild} <= set(find_marked(word.encode())), "the start of both")
        assert resident([process.pid, grandchild]) > 0
        assert 0 < proportional([process.pid, grandchild]) <= resident([process.pid, grandchild])
        for pid in (grandchild, process.pid):
            os.kill(pid, 9)
    eventually(lambda: not find_marked(word.encode()), "the end of both")


def test_a_group_that_is_not_there_is_empty_and_removed() -> None:
    group = ControlGroup(1, "/sys/fs/cgroup/no-such-group")
    assert group.pids() == []
    assert group.count_killed() == 0
    assert group.resident() == 0
    assert group.remove()


def test_the_least_used_cores_come_first() -> None:
    assert least_used(2, [0, 1, 2, 3], Counter({0: 1, 2: 1})) == [1, 3]
    assert least_used(3, [0, 1, 2, 3], Counter({0: 1, 2: 1})) == [0, 1, 3]
    assert least_used(9, [4, 5], Counter()) == [4, 5]


def test_cores_are_given_once_and_a_job_keeps_those_it_was_given(tmp_path: Path) -> None:
    there = {"cores": [0, 1, 2]}
    first = allot(tmp_path, "a", {"cores": 2}, there)
    second = allot(tmp_path, "b", {"cores": 1}, there)
    assert sorted(first["cores"] + second["cores"]) == [0, 1, 2]
    assert allot(tmp_path, "a", {"cores": 1}, there) == first
    (tmp_path / "a").unlink()
    assert allot(tmp_path, "c", {"cores": 2}, there) == first


def test_where_nothing_can_be_mounted_a_volume_is_a_link_to_files_without_write_permission(tmp_path: Path) -> None:
    source = tmp_path / "data"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "x").write_text("x")
    link(str(source), str(tmp_path / "work" / "in"), True)
    assert (tmp_path / "work" / "in" / "deep" / "x").read_text() == "x"
    assert not any(path.stat().st_mode & 0o222 for path in (source, source / "deep", source / "deep" / "x"))
    link(str(source), str(tmp_path / "work" / "in"), False)


def test_output_beyond_the_limit_is_cut_while_the_job_writes_on(tmp_path: Path) -> None:
    before = os.getcwd()
    os.chdir(tmp_path)
    try:
        outputs = Outputs(100)
        for _ in range(3):
            os.write(outputs.appended[0], b"x" * 80)
            outputs.look()
        text = (tmp_path / "stdout").read_bytes()
        assert len(text) == 100
        assert text.endswith(b"was dropped\n")
        assert outputs.cut
        os.write(outputs.appended[1], b"ok\ncat: write error: No space left on device\n")
        assert outputs.last_words(FULL) == "it said: cat: write error: No space left on device"
        for file in outputs.appended + outputs.direct:
            os.close(file)
    finally:
        os.chdir(before)
