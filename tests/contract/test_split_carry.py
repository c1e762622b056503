"""The relay, its agent and far halves, as processes around a real spool; a small program stands in for HTCondor."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sublet.pilots.split import near_half
from sublet.pilots.split.channel import BOOT
from sublet.pilots.split.travel import AGENT, FAR_HALF, OLDEST, program, text_of
from tests.serving import eventually

STARTER = """#!/usr/bin/env python3
import os, re, signal, subprocess, sys
words = dict(zip(sys.argv[5::2], sys.argv[6::2]))
ad = open(words["-job-input-ad"]).read()
get = lambda name: re.search(r'(?m)^%s = "(.*)"' % name, ad).group(1)
os.chdir(get("Iwd"))
if "Broken = True" in ad:
    sys.exit("the starter is broken")
child = subprocess.Popen([get("Cmd")], stdout=open("_condor_stdout", "wb"), stderr=open("_condor_stderr", "wb"))
signal.signal(signal.SIGQUIT, lambda *_: (child.kill(), os._exit(0)))
open(words["-job-output-ad"], "w").write("ExitCode = %d\\n" % child.wait())
"""


class Split:
    """A lease of a few nodes, all on this machine."""

    def __init__(self, directory: Path, **plan: Any) -> None:
        self.directory, self.spool = directory, directory / "shared" / "spool"
        self.near = directory / "near"
        for node in ("0", "1"):
            (self.near / "bridge" / node).mkdir(mode=0o700, parents=True)
        self.spool.parent.mkdir(exist_ok=True)
        self.noise = directory / "noise.sh"
        self.noise.write_text(f"printf 'Welcome!\\nno end of line'\nexec {sys.executable} -u -c \"$1\"\n")
        settings = {"lease": "l1", "nodes": 2, "spool": str(self.spool), "dead": 2.0, "silent": 3.0, "poll": 0.05}
        settings["channel"] = ["sh", str(self.noise), BOOT]
        (self.near / "relay.json").write_text(json.dumps({**settings, **plan}))
        self.starter = directory / "condor_starter"
        self.starter.write_text(STARTER)
        self.starter.chmod(0o755)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.jobs = 0

    def start(self, *words: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
        log = (self.directory / "log").open("ab")
        process = subprocess.Popen([sys.executable, *words], cwd=cwd, stdout=log, stderr=log, start_new_session=True)
        log.close()
        self.processes.append(process)
        return process

    def relay(self) -> subprocess.Popen[bytes]:
        return self.start("-m", "sublet.pilots.split.relay", str(self.near))

    def far(self, node: int, **more: Any) -> subprocess.Popen[bytes]:
        eventually((self.spool / "agent").exists, "an agent")  # whose answer a far half comes with
        place = self.directory / f"node{node}-{len(self.processes)}"
        place.mkdir()
        settings = {"spool": str(self.spool), "node": node, "lease_id": "l1", "starter": str(self.starter)}
        settings |= {"poll": 0.05, "life": 3600, "lease": 60, "facts": {"cores": "2"}}
        (place / "far.py").write_bytes(program(FAR_HALF, {**settings, **more}))
        return self.start("far.py", cwd=place)

    def job(self, script: str, node: int = 0, ad: str = "", **files: bytes) -> Job:
        self.jobs += 1
        return Job(self, self.jobs, node, script, ad, files)

    def state(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.near / "state.json").read_text())
        except FileNotFoundError:
            return {"link": False, "nodes": {}, "attempts": {}, "refused": {}}
        return found

    def alive(self, node: int) -> bool | None:
        found = self.state()["nodes"].get(str(node))
        return found and bool(found["alive"])

    def probe(self, node: int = 0) -> str:
        return (self.near / "bridge" / str(node) / "probe.out").read_text()

    def stop(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):  # a job goes on without its far half
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Job:
    """What the bridge's starter does for one job: its sandbox, and a near half that waits."""

    def __init__(
        self,
        split: Split,
        number: int,
        node: int,
        script: str,
        ad: str,
        files: dict[str, bytes],
        sandbox: Path | None = None,
    ) -> None:
        self.split, self.id, self.bridge = split, f"slot1_{number}-{number}", str(split.near / "bridge" / str(node))
        self.scratch = split.directory / f"scratch{number}"
        self.scratch.mkdir()
        for name, content in {"run": f"#!/bin/sh\n{script}\n".encode(), **files}.items():
            (self.scratch / name).write_bytes(content)
        words = f'ClusterId = {number}\nProcId = 0\nCmd = "/somewhere/run"\nIn = "/dev/null"\n{ad}\n'
        (self.scratch / ".job.ad").write_text(words)
        near = [sys.executable, near_half.__file__, "submit_wait_stageout", self.bridge, self.id]
        self.process = subprocess.Popen(
            [*near, "no-such-file", "unused", str(sandbox or self.scratch)],
            cwd=self.scratch,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        split.processes.append(self.process)

    def ends(self) -> int:
        return self.process.wait(30)

    def remove(self) -> None:
        words = [sys.executable, near_half.__file__, "remove", self.bridge, self.id]
        subprocess.run(words, check=True, timeout=30)

    def told(self) -> str:
        return (self.scratch / ".job.ad.out").read_text()

    def has(self, name: str) -> bytes:
        return (self.scratch / name).read_bytes()


@pytest.fixture
def splits(tmp_path: Path) -> Iterator[Callable[..., Split]]:
    """Makes leases; all their processes are gone at the end."""
    with ExitStack() as stack:

        def make(**plan: Any) -> Split:
            split = Split(tmp_path, **plan)
            stack.callback(split.stop)
            return split

        yield make


def test_what_travels_is_understood_by_an_old_python_and_needs_no_locks_and_no_notices() -> None:
    import ast

    for modules in (AGENT, FAR_HALF):
        text = text_of(*modules)
        ast.parse(text, feature_version=OLDEST)
        assert "import sublet" not in text
        assert "from sublet" not in text
        assert not [word for word in ("fcntl", "flock", "lockf", "inotify", "O_EXCL") if word in text]


def test_a_job_runs_on_the_far_side_and_what_it_left_comes_home(splits: Callable[..., Split]) -> None:
    split = splits()
    split.relay()
    split.far(0)
    script = "cat input; mkdir d other; echo out > d/result; echo x > other/x; echo y > y; echo warn >&2; exit 7"
    job = split.job(script, ad='TransferOutput = "d"', input=b"hello\n", untouched=b"x")
    before = (job.scratch / "untouched").stat().st_mtime_ns
    assert job.ends() == 0
    assert job.told() == "ExitCode = 7\n"
    assert job.has("_condor_stdout") == b"hello\n"
    assert job.has("_condor_stderr") == b"warn\n"
    assert job.has("d/result") == b"out\n"
    assert not [name for name in ("other", "y") if (job.scratch / name).exists()], "it did not ask for these"
    assert (job.scratch / "untouched").stat().st_mtime_ns == before
    assert not (job.scratch / ".sublet-incoming").exists()
    eventually(lambda: files_of(split.spool) <= {"lease", "agent", "alive/0"}, "an empty spool")
    eventually(lambda: not list((split.near / "attempts").iterdir()), "a relay that forgets")


def test_links_pipes_and_what_nobody_can_read_cost_a_job_nothing(splits: Callable[..., Split]) -> None:
    """As a virtual environment, a server's socket and a `mkfifo` leave a sandbox."""
    split = splits()
    split.relay()
    split.far(0)
    links = "ln -s /etc/hostname absolute; ln -s file relative; ln -s nowhere dangling; ln -s / root"
    made = f"echo text > file; {links}; mkfifo pipe"
    job = split.job(f"{made}; mkdir folder; echo deep > folder/deep; exit 3")
    assert job.ends() == 0
    assert job.told() == "ExitCode = 3\n"
    assert (job.has("file"), job.has("relative")) == (b"text\n", b"text\n"), "a link is sent as what it leads to"
    assert job.has("absolute") == Path("/etc/hostname").read_bytes()
    left_out = ("dangling", "pipe", "root", "folder")  # as HTCondor: only files on top, where nothing is named
    assert not [name for name in left_out if (job.scratch / name).is_symlink() or (job.scratch / name).exists()]
    assert list(split.state()["attempts"].values()) in ([], [1]), "it ran once"


def test_the_directory_of_a_submit_file_is_never_carried_off(splits: Callable[..., Split], tmp_path: Path) -> None:
    split = splits()
    (home := tmp_path / "submit").mkdir()
    (home / "id_ed25519").write_text("private")
    job = Job(split, 9, 0, "true", "", {}, sandbox=home)
    assert job.ends() == 1
    assert job.process.stdout
    assert b"should_transfer_files" in job.process.stdout.read()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that the spool is on, with 2 MB of room."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    (place := tmp_path / "shared").mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


BIG = "head -c 4000000 /dev/zero > big; echo once >> witness; cp witness ../../../witness; exit 4"


def test_a_result_that_finds_no_room_is_kept_and_sent_when_there_is_some(
    small_disk: Path, splits: Callable[..., Split]
) -> None:
    split = splits()
    split.relay()
    split.far(0)
    job = split.job(BIG)
    log = split.directory / "log"
    eventually(lambda: "can't deliver" in log.read_text() and "No space left" in log.read_text(), "a full spool")
    assert job.process.poll() is None
    eventually(lambda: split.alive(0) is True, "a word that it lives")
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    assert job.ends() == 0
    assert (job.told(), len(job.has("big")), job.has("witness")) == ("ExitCode = 4\n", 4_000_000, b"once\n")


def test_a_result_that_never_finds_room_is_told_with_the_reason_and_not_run_again(
    small_disk: Path, splits: Callable[..., Split]
) -> None:
    split = splits()
    split.relay()
    split.far(0, keep=0.5)
    job = split.job(BIG)
    assert job.ends() == 1
    assert job.process.stdout
    assert b"its results could not be brought back: " in job.process.stdout.read()


def test_a_large_sandbox_does_not_delay_a_small_one_and_is_the_same_at_the_end(splits: Callable[..., Split]) -> None:
    split = splits()
    split.relay()
    split.far(0)
    content = os.urandom(30 << 20)
    large = split.job("cat big > copy", big=content)
    small = [split.job(f"echo {number}") for number in range(5)]
    assert [job.ends() for job in small] == [0] * 5
    assert [job.has("_condor_stdout") for job in small] == [b"%d\n" % number for number in range(5)]
    assert large.ends() == 0
    assert large.has("copy") == content


def test_what_it_prints_is_seen_while_it_runs(splits: Callable[..., Split], tmp_path: Path) -> None:
    split = splits()
    split.relay()
    split.far(0)
    job = split.job(f"echo first; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; echo last")
    eventually(
        lambda: (job.scratch / "_condor_stdout").exists() and job.has("_condor_stdout") == b"first\n", "its line"
    )
    assert job.process.poll() is None
    (tmp_path / "go").touch()
    assert job.ends() == 0
    assert job.has("_condor_stdout") == b"first\nlast\n"


def test_a_far_half_that_dies_is_given_up_while_the_other_goes_on(splits: Callable[..., Split], tmp_path: Path) -> None:
    split = splits()
    split.relay()
    first, _ = split.far(0), split.far(1)
    eventually(lambda: split.alive(0) and split.alive(1), "two nodes")
    lost = split.job("sleep 60")
    other = split.job(f"while [ ! -e {tmp_path}/go ]; do sleep 0.1; done", node=1)
    eventually(lambda: split.state()["attempts"] == {"stored": 2}, "two attempts")
    first.kill()
    eventually(lambda: split.alive(0) is False, "its death")
    assert "SubletFarAlive = False" in split.probe(0)
    assert "SubletFarReady = True" in split.probe(1)
    assert lost.process.poll() is None  # it never ends by itself: the job would be completed, or held
    lost.remove()
    assert lost.ends() == 0
    (tmp_path / "go").touch()
    assert other.ends() == 0


def test_a_node_that_slept_delivers_nothing_of_its_past(splits: Callable[..., Split], tmp_path: Path) -> None:
    split = splits()
    split.relay()
    far = split.far(0)
    job = split.job(f"while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; echo late > result")
    eventually(lambda: split.state()["attempts"] == {"stored": 1}, "an attempt")
    eventually(lambda: split.state()["nodes"].get("0", {}).get("runs") == 1, "a running job")
    far.send_signal(signal.SIGSTOP)
    eventually(lambda: split.alive(0) is False, "its death")
    job.remove()
    assert job.ends() == 0
    (tmp_path / "go").touch()
    far.send_signal(signal.SIGCONT)
    eventually(lambda: split.alive(0), "its new life under another epoch")
    assert not (job.scratch / "result").exists()
    again = split.job("echo new > result")
    assert again.ends() == 0
    assert again.has("result") == b"new\n"


def test_a_lost_link_costs_nothing_but_time(splits: Callable[..., Split], tmp_path: Path) -> None:
    split = splits()
    relay = split.relay()
    split.far(0)
    job = split.job(f"while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; echo done")
    eventually(lambda: split.alive(0) and split.state()["attempts"] == {"stored": 1}, "an attempt on a living node")
    split.noise.rename(tmp_path / "gone")
    for child in children(relay.pid):
        os.kill(child, signal.SIGKILL)
    eventually(lambda: not split.state()["link"], "a lost link")
    assert "SubletFarReady = False" in split.probe()
    assert "SubletFarAlive = True" in split.probe()
    (tmp_path / "go").touch()
    waiting = split.job("echo waited")
    (tmp_path / "gone").rename(split.noise)
    assert job.ends() == 0
    assert waiting.ends() == 0
    assert job.has("_condor_stdout") == b"done\n"


def test_a_link_that_is_lost_for_longer_than_a_jobs_lease_gives_its_nodes_up_and_a_late_result_is_refused(
    splits: Callable[..., Split], tmp_path: Path
) -> None:
    split = splits(grace=1.0)
    relay = split.relay()
    split.far(0)
    job = split.job(f"while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; echo late > result")
    eventually(lambda: split.state()["nodes"].get("0", {}).get("runs") == 1, "a running job")
    split.noise.rename(tmp_path / "gone")
    for child in children(relay.pid):
        os.kill(child, signal.SIGKILL)
    eventually(lambda: "SubletFarAlive = False" in split.probe(), "the end of its lease")
    job.remove()  # as the bridge's starter does, when its startd releases the job
    assert job.ends() == 0
    (tmp_path / "go").touch()
    eventually(lambda: any(name.startswith("out/") for name in files_of(split.spool)), "a result in the spool")
    (tmp_path / "gone").rename(split.noise)
    eventually(lambda: sum(split.state()["refused"].values()) == 1, "a refusal")
    assert not (job.scratch / "result").exists()
    eventually(lambda: split.alive(0), "its new life under another epoch")
    eventually(lambda: not any(name.startswith(("out/", "in/")) for name in files_of(split.spool)), "an empty spool")


def test_a_relay_that_is_killed_goes_on_where_it_was(splits: Callable[..., Split], tmp_path: Path) -> None:
    split = splits()
    relay = split.relay()
    split.far(0)
    job = split.job(f"while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; echo $$ >> {tmp_path}/starts")
    eventually(lambda: split.state()["attempts"] == {"stored": 1}, "an attempt")
    relay.kill()
    relay.wait()
    (tmp_path / "go").touch()
    eventually(lambda: (tmp_path / "starts").exists(), "its end")
    split.relay()
    assert job.ends() == 0
    assert len((tmp_path / "starts").read_text().split()) == 1


def test_a_removed_job_is_stopped_on_its_node(splits: Callable[..., Split], tmp_path: Path) -> None:
    split = splits()
    split.relay()
    split.far(0)
    job = split.job(f"echo $$ > {tmp_path}/pid; exec sleep 60")
    eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "a running job")
    job.remove()
    assert job.ends() == 0
    pid = int((tmp_path / "pid").read_text())
    eventually(lambda: not Path(f"/proc/{pid}").exists(), "its end there")
    eventually(lambda: files_of(split.spool) <= {"lease", "agent", "alive/0"}, "an empty spool")
    eventually(lambda: not list((split.near / "attempts").iterdir()), "a relay that forgets")


def test_a_starter_that_fails_is_never_the_jobs_end(splits: Callable[..., Split]) -> None:
    split = splits()
    split.relay()
    split.far(0)
    codes = []
    for _ in range(3):
        split.jobs = 0  # the same job, given again
        job = Job(split, 1, 0, "true", "Broken = True", {}) if not codes else again(split)
        if len(codes) < 2:
            eventually(lambda: "slot1_1" in split.probe(), "a request to evict it")
            job.remove()
        codes.append(job.ends())
    assert codes == [0, 0, 1]
    assert b"the starter is broken" in (job.process.stdout.read() if job.process.stdout else b"")


def again(split: Split) -> Job:
    """The same job in the same slot once more."""
    import shutil

    shutil.rmtree(split.directory / "scratch1")
    return Job(split, 1, 0, "true", "Broken = True", {})


def test_a_shutdown_ends_the_far_half_and_the_spool_is_gone(splits: Callable[..., Split]) -> None:
    split = splits()
    relay = split.relay()
    far = split.far(0)
    eventually(lambda: split.alive(0), "a node")
    assert near_half.call(str(split.near), {"op": "stop"}) == {}
    assert far.wait(30) == 0
    assert near_half.call(str(split.near), {"op": "clean"}) == {"cleaned": True, "trouble": ""}
    assert relay.wait(30) == 0
    assert not split.spool.exists()


def files_of(directory: Path) -> set[str]:
    return {str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file()}


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
