"""The relay, its agent and far halves, as processes around a real spool; a small program stands in for HTCondor."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sublet.annexes.split import near_half
from sublet.annexes.split.travel import AGENT, FAR_HALF, OLDEST, text_of
from sublet.platforms.batch.fetching import NEAR_PLUGIN, read_program
from tests.contract.carrying import Job, Split, again, files_of, is_forgotten
from tests.serving import eventually


def test_what_travels_is_understood_by_an_old_python_and_needs_no_locks_and_no_notices() -> None:
    import ast

    for modules in (AGENT, FAR_HALF):
        text = text_of(*modules)
        ast.parse(text, feature_version=OLDEST)
        assert "import sublet" not in text
        assert "from sublet" not in text
        assert not [word for word in ("fcntl", "flock", "lockf", "inotify", "O_EXCL") if word in text]
        assert "time.time()" not in text, "a clock that is set there ends nothing"
        bodies = ast.parse(text).body
        targets = [target for body in bodies if isinstance(body, ast.Assign) for target in body.targets]
        named = [body.name for body in bodies if isinstance(body, ast.ClassDef | ast.FunctionDef)]
        named += [target.id for target in targets if isinstance(target, ast.Name)]
        assert sorted(named) == sorted(set(named)), "they are one namespace"


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
    eventually(lambda: split.state()["nodes"].get("0", {}).get("runs") == 0, "a node that has nothing more to do")


def test_a_job_finds_its_ad_and_that_of_its_slot_in_its_sandbox_and_they_stay_there(
    splits: Callable[..., Split],
) -> None:
    split = splits()
    split.relay()
    split.far(0)
    wanted = 'ManifestDesired = true\nManifestDir = "lists"\nTransferOutput = "none"'
    script = "grep -h ^Cpus .machine.ad; grep -h ^ClusterId .job.ad; echo more >>.job.ad; echo more >>.machine.ad"
    machine: dict[str, Any] = {".machine.ad": b"Cpus = 3\n"}
    job = split.job(script, ad=wanted, **machine)
    assert job.ends() == 0
    assert job.has("lists/environment").startswith(b"A=1"), "its manifest comes home, whatever it wants"
    assert job.has("_condor_stdout") == b"Cpus = 3\nClusterId = 1\n"
    assert b"more" not in job.has(".job.ad") + job.has(".machine.ad")


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


def test_a_wanted_link_to_a_directory_comes_home_as_a_link_and_modes_of_directories_are_kept(
    splits: Callable[..., Split],
) -> None:
    """HTCondor sends no such link, and holds the job: nothing that a job wants is left out in silence."""
    split = splits()
    split.relay()
    split.far(0)
    made = "mkdir -m 755 -p d/sub; mkdir -m 700 d/own; echo x > d/sub/x; ln -s sub d/latest; ln -s /etc d/outside"
    job = split.job(f"{made}; ln -s d way", ad='TransferOutput = "d,way/sub/x"')
    assert job.ends() == 0
    assert all((job.scratch / "d" / name).is_symlink() for name in ("latest", "outside"))
    modes = [(job.scratch / "d" / name).stat().st_mode & 0o777 for name in ("sub", "own")]
    assert job.has("way/sub/x") == b"x\n", "a link on the way to what it wants is followed"
    assert (job.has("d/sub/x"), modes) == (b"x\n", [0o755, 0o700])


def test_a_job_that_can_not_be_started_is_held_at_once_with_the_reason(splits: Callable[..., Split]) -> None:
    """Not taken for one that has ended, and its node goes on."""
    split = splits()
    split.relay()
    split.far(0)
    ads = ('Cmd = "/no/such/program"', 'In = "/somewhere/words.txt"', 'Cmd = "/etc/passwd"')
    said = []
    for ad in ads:
        job = split.job("true", ad=ad)
        assert job.ends() == 1
        assert job.process.stdout
        said.append(job.process.stdout.read().decode())
    assert said == [
        "Failed to execute 'program': No such file or directory\n",
        "Failed to open '/somewhere/words.txt' as standard input: No such file or directory\n",
        "Failed to execute 'passwd': Permission denied\n",
    ]
    assert split.job("true").ends() == 0


def test_the_directory_of_a_submit_file_is_never_carried_off(splits: Callable[..., Split], tmp_path: Path) -> None:
    split = splits()
    (home := tmp_path / "submit").mkdir()
    (home / "id_ed25519").write_text("private")
    job = Job(split, 9, 0, "true", "", {}, sandbox=home)
    assert job.ends() == 1
    assert job.process.stdout
    said = job.process.stdout.read()
    assert b"should_transfer_files" in said
    assert (job.scratch / ".worker_stdout").read_bytes() == said, "HTCondor takes the reason of the hold from here"


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
    job.remove()
    eventually(lambda: is_forgotten(split), "nothing more to stop")


def test_an_image_that_can_not_be_run_holds_its_job_with_the_reason_and_ends_nothing_else(
    splits: Callable[..., Split], tmp_path: Path
) -> None:
    """Many tries of a wrong image say nothing of the node; nor does anything while other jobs run there."""
    split = splits()
    split.relay()
    far = split.far(0)
    running = split.job(f"while [ ! -e {tmp_path}/go ]; do sleep 0.05; done; exit 5")
    eventually(lambda: split.state()["attempts"] == {"stored": 1}, "a running job")
    reasons = {
        'ContainerImage = "bad.sif"': "its image could not be run: FATAL: could not open image bad.sif: no image",
        "Broken = True": "the starter ended without the job's result; the starter is broken",
    }
    for number, (ad, why) in enumerate(reasons.items(), 7):
        assert fail_thrice(split, number, ad).endswith(f"{why}\n")
    assert far.poll() is None
    (tmp_path / "go").touch()
    assert (running.ends(), running.told()) == (0, "ExitCode = 5\n")
    assert split.job("true").ends() == 0


def fail_thrice(split: Split, number: int, ad: str) -> str:
    """Give a job that can't be started until it is held; why it is."""
    for _ in range(2):
        job = Job(split, number, 0, "true", ad, {})
        eventually(lambda: f"slot1_{number}" in split.probe(), "a request to evict it")
        job.remove()
        assert job.ends() == 0
    job = Job(split, number, 0, "true", ad, {})
    assert job.ends() == 1
    job.remove()
    return job.process.stdout.read().decode() if job.process.stdout else ""


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


def test_what_a_system_keeps_is_copied_there_and_only_a_note_of_it_travels(
    splits: Callable[..., Split], tmp_path: Path
) -> None:
    split = splits()
    large, folder = split.directory / "kept" / "sha256-1", split.directory / "kept" / "sha256-2"
    for place in (large, folder):
        place.mkdir(parents=True)
    (large / "content").write_bytes(b"large\n" * 1000)
    with tarfile.open(folder / "content", "w") as archive:
        info = tarfile.TarInfo("env/tool")
        info.size = 3
        archive.addfile(info, io.BytesIO(b"ls\n"))
    urls = {"big.dat": f"subletkept://{large}/sha256-1", "sha256-2": f"subletkeptdir://{folder}/sha256-2"}
    asked = [f'[ LocalFileName = "{tmp_path}/{name}"; Url = "{url}" ]\n' for name, url in urls.items()]
    (tmp_path / "plug-in").write_bytes(read_program(*NEAR_PLUGIN))
    (tmp_path / "asked").write_text("".join(asked))
    words = [
        sys.executable,
        "-IS",
        str(tmp_path / "plug-in"),
        str(tmp_path),
        "0",
        "/bin/false",
        "-infile",
        str(tmp_path / "asked"),
        "-outfile",
        str(tmp_path / "told"),
    ]
    subprocess.run(words, check=True)
    assert (tmp_path / "told").read_text().count("TransferSuccess = true") == 2
    notes = {name: (tmp_path / name).read_bytes() for name in urls}
    assert max(map(len, notes.values())) < 500
    split.relay()
    split.far(0, kept=str(split.directory / "kept"))
    job = split.job("wc -c <big.dat; cat env/tool; ls; echo more >>big.dat", **notes)
    assert job.ends() == 0
    assert job.has("_condor_stdout").split()[:2] == [b"6000", b"ls"]
    assert b"sha256-2" not in job.has("_condor_stdout")
    assert (large / "content").read_bytes() == b"large\n" * 1000, "each job has its own copy"
    (large / "content").write_bytes(b"#!/bin/sh\necho the program itself\n")
    program = split.job("", run=notes["big.dat"].replace(b"sha256-1\n", b"run\n"))
    assert program.ends() == 0
    assert program.has("_condor_stdout") == b"the program itself\n", "an executable is kept in the same way"
    elsewhere = split.job("true", **{"big.dat": notes["big.dat"].replace(b"/kept/", b"/other/")})
    eventually(lambda: "elsewhere than to what the system keeps" in (split.directory / "log").read_text(), "a refusal")
    elsewhere.remove()


SLEEPS = "while :; do sleep 0.1; done"


def test_a_job_that_is_asked_to_end_takes_its_time_and_what_it_saves_comes_home_if_it_wants(
    splits: Callable[..., Split], tmp_path: Path
) -> None:
    split = splits()
    split.relay()
    split.far(0)
    script = f"trap 'sleep 1; echo saved > state; exit 3' TERM; touch {tmp_path}/begun$1; {SLEEPS}"
    saving = split.job(script.replace("$1", "1"), ad='WhenToTransferOutput = "ON_EXIT_OR_EVICT"')
    other = split.job(script.replace("$1", "2"))
    eventually(lambda: all((tmp_path / f"begun{number}").exists() for number in (1, 2)), "running jobs")
    eventually(
        lambda: split.alive(0) and split.state()["attempts"] == {"stored": 2}, "a relay that knows that they run"
    )
    for job in (saving, other):
        job.remove()
        assert job.ends() == 0
        assert job.told() == "ExitCode = 3\n"
    assert saving.has("state") == b"saved\n"
    assert not (other.scratch / "state").exists(), "a job that doesn't want it leaves nothing when it is evicted"
    eventually(lambda: is_forgotten(split), "nothing more to stop")
    assert split.job("true").ends() == 0


def test_a_job_that_takes_too_long_to_end_is_stopped_and_so_is_one_whose_starter_is_gone(
    splits: Callable[..., Split], tmp_path: Path
) -> None:
    split = splits()
    split.relay()
    split.far(0)
    jobs = [split.job(f"trap '' TERM; echo $$ > {tmp_path}/pid{number}; {SLEEPS}") for number in (1, 2)]
    pids = [tmp_path / f"pid{number}" for number in (1, 2)]
    eventually(lambda: all(file.exists() and file.read_text() for file in pids), "running jobs")
    for job in jobs:
        job.remove()
    jobs[0].remove()  # as when its starter shuts down fast in the end
    assert jobs[0].ends() == 0
    jobs[1].process.kill()  # as when its starter is killed
    for file in pids:
        eventually(lambda: not Path(f"/proc/{int(file.read_text())}").exists(), "its end there")  # noqa: B023
    eventually(lambda: is_forgotten(split), "nothing more to stop")


def test_a_starter_that_shuts_down_fast_stops_its_job_at_once(splits: Callable[..., Split], tmp_path: Path) -> None:
    split = splits()
    split.relay()
    split.far(0)
    job = split.job(f"trap '' TERM; echo $$ > {tmp_path}/pid; {SLEEPS}")
    eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "a running job")
    (logs := Path(job.bridge) / "log").mkdir()
    (logs / "StarterLog.slot1_1").write_text("11/19/26 06:10:20 (pid:1) ShutdownFast all jobs.\n")
    job.remove()
    assert job.ends() == 0
    pid = int((tmp_path / "pid").read_text())
    eventually(lambda: not Path(f"/proc/{pid}").exists(), "its end there")


def test_files_keep_their_modes(splits: Callable[..., Split]) -> None:
    split = splits()
    split.relay()
    split.far(0)
    job = split.job("echo x > all; chmod 666 all; echo x > own; chmod 400 own; echo x > set; chmod 4755 set")
    assert job.ends() == 0
    assert [(job.scratch / name).stat().st_mode & 0o7777 for name in ("all", "own", "set")] == [0o666, 0o400, 0o755]
