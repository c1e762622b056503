"""How a pilot runs a job: its end passes through as it was, unless the site stopped all processes of the pilot at once.

HTCondor's starter is this process, the job's owner is nobody, and the site is a process of root.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sublet.annexes.pilots.bundle import far

READY = "import time; print('ready', flush=True); time.sleep(60)"
TIDY = f"import signal, sys; signal.signal(15, lambda *_: sys.exit(9)); {READY}"
Starter = Callable[..., subprocess.Popen[str]]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can signal other people's processes")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    """Starts a job as the starter would."""
    for directory in (tmp_path, *tmp_path.parents):
        if directory.stat().st_uid == os.geteuid():
            directory.chmod(directory.stat().st_mode | 0o111)  # nobody reads the program there
    program = tmp_path / "run_job.pl"
    program.write_bytes(far("run_job", "pl"))
    begun: list[subprocess.Popen[str]] = []

    def start(*words: str, **environment: str) -> subprocess.Popen[str]:
        job = subprocess.Popen(
            ["perl", str(program), *words],
            user="nobody",
            cwd="/",
            env={"PATH": os.environ["PATH"], **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        begun.append(job)
        return job

    yield start
    for job in begun:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
        job.communicate()


def run_python(start: Starter, code: str) -> subprocess.Popen[str]:
    """A job that has begun."""
    job = start("/usr/bin/python3", "-c", code)
    assert job.stdout
    assert job.stdout.readline() == "ready\n"
    return job


def stop_as_site(job: subprocess.Popen[str]) -> None:
    """Signal all processes of the job, that which runs it last, from a process that isn't the starter."""
    inner = subprocess.run(["pgrep", "-P", str(job.pid)], capture_output=True, text=True, check=True).stdout.split()
    subprocess.run(["kill", "-TERM", *inner, str(job.pid)], check=True)


@pytest.mark.parametrize(
    ("words", "end"), [("exit 0", 0), ("exit 7", 7), ("exit 143", 143), ("kill -9 $$", -9), ("kill -15 $$", -15)]
)
def test_the_end_of_a_job_passes_through_as_it_was(start: Starter, words: str, end: int) -> None:
    assert start("sh", "-c", words).wait(20) == end


def test_a_job_reads_what_it_is_given_and_keeps_its_words_apart(start: Starter) -> None:
    printed, _ = start("sh", "-c", 'cat; printf "%s." "$@"', "sh", "a b", "", "c").communicate("in\n")
    assert printed == "in\na b..c."


def test_htcondors_signals_reach_the_job_which_may_end_in_its_own_way(start: Starter) -> None:
    plain, tidy = run_python(start, READY), run_python(start, TIDY)
    for job in (plain, tidy):
        job.terminate()
    assert [plain.wait(20), tidy.wait(20)] == [-signal.SIGTERM, 9]


@pytest.mark.parametrize(("code", "end"), [(READY, -signal.SIGTERM), (TIDY, 9)])
def test_the_end_of_a_job_that_the_site_stopped_is_kept_back_until_htcondor_stops_it(
    start: Starter, code: str, end: int
) -> None:
    job = run_python(start, code)
    stop_as_site(job)
    with pytest.raises(subprocess.TimeoutExpired):
        job.wait(1.5)
    job.terminate()
    assert job.wait(20) == end


def test_a_job_hears_the_signal_that_it_asked_for_though_the_pilot_ignores_it(start: Starter) -> None:
    """`kill_sig = SIGINT`: what a shell starts in the background, as a pilot is, ignores it, and so did all jobs."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
    try:
        job = start("sh", "-c", "trap 'exit 7' INT QUIT; echo ready; while :; do sleep 0.1; done")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert job.stdout
    assert job.stdout.readline() == "ready\n"
    job.send_signal(signal.SIGINT)
    assert job.wait(20) == 7


def test_a_job_that_signals_its_own_group_has_ended(start: Starter) -> None:
    assert start("sh", "-c", "kill -TERM 0; sleep 60").wait(10) == -signal.SIGTERM


def test_what_can_not_be_started_ends_and_is_not_started_for_ever(start: Starter, tmp_path: Path) -> None:
    said = tmp_path / "said"
    said.touch()
    os.chown(said, *[int(subprocess.check_output(["id", flag, "nobody"])) for flag in ("-u", "-g")])
    assert start("/no/such/program", _CONDOR_WRAPPER_ERROR_FILE=str(said)).wait(20) == 127
    assert said.read_text() == "", "HTCondor would take it for a fault of the node, and start the job again"
