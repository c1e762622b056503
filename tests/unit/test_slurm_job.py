"""The files of a job, and the scripts for the far side, tried with the sh that is here."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sublet.booking.model.job import Job, Mount, Program
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import PlatformRefused
from sublet.platforms.batch.job import Submission, Surroundings, pack, program
from sublet.platforms.batch.quoting import inside
from sublet.platforms.batch.scripts import job_script, read_script, script
from sublet.platforms.slurm.commands import PACKAGE

KEY = f"key-{uuid4().hex}"  # processes are known by it, and others may try the same on this machine
words = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12), max_size=4)


def job(*argv: str, seconds: float = 60, **changes: Any) -> tuple[Job, Submission]:
    until = datetime.now(UTC) + timedelta(seconds=seconds)
    values: dict[str, object] = {
        "program": Program(argv),
        "amounts": Amounts(Shape(1, 1 << 27), parts=changes.pop("parts", 1)),
        "nodes": (),
        "warn": timedelta(0),
    }
    made = Job(**(values | {"until": until} | changes))  # type: ignore[arg-type]
    time = timedelta(seconds=seconds)
    limit = timedelta(minutes=-(-(time + timedelta(minutes=1)) // timedelta(minutes=1)))
    return made, Submission((), replace(made.amounts, time=time), limit)


def laid_out(place: Path, made: Job, wish: Submission, key: str = KEY) -> Path:
    place.mkdir(exist_ok=True, parents=True)
    for name in ("work", "data", "tmp"):
        (place / name).mkdir(exist_ok=True)
    (place / "program").write_text(program(made, key, wish, Surroundings(timedelta(seconds=1))))
    (place / "job.sh").write_text(job_script(PACKAGE))
    (place / "life.sh").write_text(read_script("life"))
    return place


def run(place: Path, *, sh: str = "sh") -> dict[str, object]:
    environment = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": "7", "TMPDIR": str(place)}
    subprocess.run([sh, "job.sh", str(place)], cwd=place, env=environment, timeout=30, check=False)
    found: dict[str, object] = json.loads((place / "end.json").read_text())
    return found


@pytest.mark.parametrize("sh", ["dash", "bash"])
def test_a_job_records_its_exit_code_in_every_shell(tmp_path: Path, sh: str) -> None:
    record = run(laid_out(tmp_path / "s", *job("sh", "-c", "echo out; echo err >&2; exit 3")), sh=sh)
    assert (record["kind"], record["code"], record["job"]) == ("exited", 3, "7")
    assert (tmp_path / "s/stdout").read_text() == "out\n"
    assert (tmp_path / "s/stderr").read_text() == "err\n"
    assert not list(tmp_path.glob("s/sublet.*")), "its scratch is gone"


def with_tools(place: Path, **scripts: str) -> Path:
    """Let a job find these in place of the system's programs; what they are instead of is `$real`."""
    (tools := place.parent / "tools").mkdir()
    for name, lines in scripts.items():
        (tools / name).write_text(f"#!/bin/sh\nreal={shutil.which(name)}\n{lines}\n")
        (tools / name).chmod(0o755)
    file = place / "job.sh"
    file.write_text(file.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\nPATH={tools}:$PATH\n", 1))
    return place


@pytest.mark.parametrize("sh", ["dash", "bash"])
def test_a_signal_to_all_processes_of_a_job_does_not_cost_the_record_of_its_end(tmp_path: Path, sh: str) -> None:
    stopped = '[ -e ran/times ] && kill -s TERM $$\nexec "$real" "$@"'  # both write the end
    place = with_tools(laid_out(tmp_path / "s", *job("sh", "-c", "exit 3")), dd=stopped, date=stopped)
    record = run(place, sh=sh)
    assert (record["kind"], record["code"]) == ("exited", 3)


@pytest.mark.parametrize("sh", ["dash", "bash"])
@pytest.mark.parametrize("moment", ["uname", "mktemp"])  # the job's first one, and its last one before the program
def test_a_job_that_is_signalled_as_it_starts_has_a_record_and_starts_nothing(
    tmp_path: Path, sh: str, moment: str
) -> None:
    (place := tmp_path / "s").mkdir()
    cancel = f"""echo '"marie"' >{place}/cancel; kill -s TERM $PPID; exec "$real" "$@\""""
    record = run(with_tools(laid_out(place, *job("sh", "-c", "echo ran")), **{moment: cancel}), sh=sh)
    assert (record["kind"], record["by"], record["detail"]) == ("cancelled", "marie", "it had not started")
    assert not (place / "stdout").exists() or (place / "stdout").read_text() == ""


def test_an_end_that_could_not_be_written_is_none(tmp_path: Path) -> None:
    place = with_tools(laid_out(tmp_path / "s", *job("sh", "-c", "exit 3")), dd="exit 1")
    with pytest.raises(FileNotFoundError):
        run(place)


@pytest.mark.parametrize("sh", ["dash", "bash"])
def test_a_job_removes_what_others_that_were_killed_left_on_the_nodes_disk(tmp_path: Path, sh: str) -> None:
    place = laid_out(tmp_path / "job_1.2", *job("sh", "-c", 'case $TMPDIR in */sublet.*.*.*) : >"$TMPDIR/x" ;; esac'))
    began = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
    names = {"dead": f"sublet.{os.getpid()}.1.abc", "alive": f"sublet.{os.getpid()}.{began}.def", "own": "sublet.a.b.c"}
    for name in names.values():
        (place / name / "locked").mkdir(parents=True)
        (place / name / "locked").chmod(0o500)
    assert run(place, sh=sh)["code"] == 0
    assert {path.name for path in place.glob("sublet.*")} == {names["alive"], names["own"]}


@pytest.mark.parametrize("sh", ["dash", "bash"])
@pytest.mark.parametrize("nodes", ["1", "2"])
def test_a_job_has_a_short_path_to_its_temporary_files_which_goes_with_it(tmp_path: Path, sh: str, nodes: str) -> None:
    root = tmp_path / f"long-{'x' * 40}"
    script = f'export SLURM_JOB_NUM_NODES={nodes}; echo "$TMPDIR"; cd "$TMPDIR" && pwd -P'
    place = laid_out(root / "sessions" / "s", *job("sh", "-c", script))
    with_nodes = (place / "job.sh").read_text().replace("#!/bin/sh\n", f"#!/bin/sh\nSLURM_JOB_NUM_NODES={nodes}\n", 1)
    (place / "job.sh").write_text(with_nodes)
    (root / "t").mkdir(mode=0o700)
    (root / "t" / "sublet-0123456789").symlink_to(root / "gone")
    assert run(place, sh=sh)["code"] == 0
    short, real = (place / "stdout").read_text().split()
    assert len(short) <= (40 if nodes == "1" else len(str(root)) + 20)
    assert real.startswith(f"{place}/")
    assert not os.path.lexists(short)
    assert os.listdir(root / "t") == ([] if nodes == "2" else ["sublet-0123456789"]), "what was left is swept"


SERVER = """
import os, socket, time
listener = socket.create_server((os.environ["SUBLET_HOST"], int(os.environ["SUBLET_PORT"])))
while not os.path.exists("../connector"):
    time.sleep(0.02)
"""


@pytest.mark.parametrize("sh", ["dash", "bash"])
def test_a_job_that_serves_says_where_once_it_listens(tmp_path: Path, sh: str) -> None:
    serves = Program((sys.executable, "-c", SERVER), connects="uri:shell")
    record = run(laid_out(tmp_path / "s", *job("x", program=serves)), sh=sh)
    assert (record["kind"], record["code"]) == ("exited", 0), (tmp_path / "s/stderr").read_text()
    kind, place = (tmp_path / "s/connector").read_text().split()
    host, _, port = place.rpartition(":")
    assert (kind, host) == ("uri:shell", os.uname().nodename)
    assert 10000 <= int(port) < 32000


def test_a_job_that_never_listens_says_nothing_and_ends(tmp_path: Path) -> None:
    record = run(laid_out(tmp_path / "s", *job("x", program=Program(("true",), connects="uri:shell"))))
    assert record["kind"] == "exited"
    assert not (tmp_path / "s/connector").exists()


def test_a_second_job_of_the_same_session_does_nothing(tmp_path: Path) -> None:
    place = laid_out(tmp_path / "s", *job("sh", "-c", "echo ran"))
    run(place)
    run(place)
    assert (place / "stdout").read_text() == "ran\n"


def test_a_program_can_be_interrupted_as_anywhere_else(tmp_path: Path) -> None:
    script = "import signal; print(signal.getsignal(2) is signal.default_int_handler, signal.getsignal(15) == 0)"
    run(laid_out(tmp_path / "s", *job("python3", "-c", script)))
    assert (tmp_path / "s/stdout").read_text() == "True True\n"


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=words, value=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20))
def test_every_word_and_variable_is_data(tmp_path: Path, words: list[str], value: str) -> None:
    shown = "for w; do printf '%s\\0' \"$w\"; done; printf '%s' \"$V\""
    made, wish = job("sh", "-c", shown, "sh", *words, program=Program(("sh", "-c", shown, "sh", *words), {"V": value}))
    (tmp_path / "program").write_bytes(
        program(made, "key", wish, Surroundings(timedelta(0))).encode("utf-8", "surrogateescape")
    )
    told = ". ./program; environment; program"
    done = subprocess.run(["sh", "-c", told], cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == "".join(f"{word}\0" for word in words).encode() + value.encode()


def test_what_no_shell_can_hold_is_refused() -> None:
    made, wish = job("a\0b")
    with pytest.raises(ValueError, match="zero byte"):
        program(made, "key", wish, Surroundings(timedelta(0)))
    made, wish = job(program=Program(("true",), {"A=B; rm": "x"}))
    with pytest.raises(ValueError, match="variable"):
        program(made, "key", wish, Surroundings(timedelta(0)))


def test_a_scratch_directory_names_only_the_user_and_the_job() -> None:
    made, wish = job("true")
    text = program(made, "key", wish, Surroundings(timedelta(0), scratch="/disk/{user}/job_{job}/$(id)"))
    assert 'local_scratch=/disk/"$USER"/job_"$job_id"\'/$(id)\'' in text


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../b", "", "a\0b"])
def test_no_file_leads_out_of_the_working_directory(path: str) -> None:
    with pytest.raises(PlatformRefused):
        inside(path, "far")


def test_a_term_from_elsewhere_is_told_apart_from_a_cancel(tmp_path: Path) -> None:
    for name, cancel in (("one", ""), ("two", '"ann"\n')):
        begins = job("sh", "-c", ": >begun; exec sleep 20")
        place = laid_out(tmp_path / name, *begins, key=f"{name}-{os.getpid()}")
        environment = {"PATH": os.environ["PATH"], "SLURM_JOB_ID": "7"}
        started = subprocess.Popen(["sh", "job.sh", str(place)], cwd=place, env=environment, start_new_session=True)
        deadline = time.monotonic() + 20
        while not (place / "work" / "begun").exists():
            assert time.monotonic() < deadline
        if cancel:
            (place / "cancel").write_text(cancel)
        while started.poll() is None:
            os.killpg(started.pid, signal.SIGTERM)
            try:
                started.wait(5)
            except subprocess.TimeoutExpired:
                continue
        record = json.loads((place / "end.json").read_text())
        assert (record["kind"], record["by"]) == (("cancelled", "ann") if cancel else ("terminated", ""))


def test_links_show_data_where_it_was_asked_for_and_keep_it(tmp_path: Path) -> None:
    place = tmp_path / "s"
    made, wish = job("cat", "in/a b/x", mounts=(Mount("data/cube", "in/a b"), Mount("data/cube", "/inside/container")))
    laid_out(place, made, wish)
    (place / "data/cube").mkdir()
    (place / "data/cube/x").write_text("here")
    assert run(place)["code"] == 0
    assert (place / "stdout").read_text() == "here"
    assert not (place / "data/cube/x").stat().st_mode & 0o222


class Site:
    """A root directory, and an sbatch that does as it is told."""

    def __init__(self, root: Path, sbatch: str) -> None:
        """Write it."""
        self.root = root
        (root / "bin").mkdir()
        (root / "bin/sbatch").write_text(f"#!/bin/sh\necho called >>{root}/calls\n{sbatch}\n")
        (root / "bin/sbatch").chmod(0o755)

    def submit(self, files: bytes = b"") -> tuple[int, str]:
        """Submit the session `key`."""
        path = f"{self.root}/bin:{os.environ['PATH']}"
        argv = script("submit", str(self.root), "key", "--time=1", package=PACKAGE)
        done = subprocess.run(argv, input=files, capture_output=True, env={"PATH": path}, check=False)
        return done.returncode, done.stdout.decode()

    @property
    def calls(self) -> int:
        """How often sbatch was called."""
        return len((self.root / "calls").read_text().split())


def test_a_session_is_submitted_once(tmp_path: Path) -> None:
    site = Site(tmp_path, "echo 'Welcome to the cluster'; echo '12;far'")
    assert site.submit(pack({"work/a b": b"\0\xff\n", "job.sh": b"#!/bin/sh\n"})) == (0, "submitted 12\n")
    assert site.submit() == (0, "known\n")
    assert site.calls == 1
    assert (tmp_path / "sessions/key/work/a b").read_bytes() == b"\0\xff\n"
    assert (tmp_path / "sessions/key/id").read_text() == "12\n"
    assert (tmp_path / "sessions/key").stat().st_mode & 0o777 == 0o700


def test_what_slurm_refuses_is_as_if_it_had_never_been_tried(tmp_path: Path) -> None:
    site = Site(tmp_path, "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1")
    (tmp_path / "incoming/key/data").mkdir(parents=True)
    (tmp_path / "incoming/key/data/big").write_text("sent")
    assert site.submit()[0] == 75
    assert not (tmp_path / "sessions/key").exists()
    assert (tmp_path / "incoming/key/data/big").read_text() == "sent"


def test_an_answer_that_may_mean_either_is_never_tried_again(tmp_path: Path) -> None:
    site = Site(
        tmp_path,
        "echo 'sbatch: error: Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1",
    )
    assert site.submit()[0] == 76
    assert site.submit() == (0, "known\n")
    assert site.calls == 1


def test_clean_removes_one_session_and_never_more(tmp_path: Path) -> None:
    for key in ("one", "two"):
        (tmp_path / "sessions" / key / "work").mkdir(parents=True)
    (tmp_path / "sessions/one/work").chmod(0o500)
    for key in ("", "..", "a/b", "."):
        assert subprocess.run(script("clean", str(tmp_path), key), check=False).returncode == 64
    subprocess.run(script("clean", str(tmp_path), "one"), check=True)
    assert [path.name for path in (tmp_path / "sessions").iterdir()] == ["two"]
    assert not (tmp_path / "trash").exists()
    subprocess.run(script("clean", str(tmp_path), "two"), check=True)
    assert not tmp_path.exists()
    subprocess.run(script("clean", str(tmp_path), "two"), check=True)


def test_many_that_are_cleaned_at_once_are_all_gone(tmp_path: Path) -> None:
    keys = [f"key-{number}" for number in range(40)]
    for key in keys:
        (tmp_path / "sessions" / key / "work").mkdir(parents=True)
    cleaning = [subprocess.Popen(script("clean", str(tmp_path), key)) for key in keys]
    assert {process.wait(60) for process in cleaning} == {0}
    assert not tmp_path.exists()


def test_shared_files_that_are_let_go_at_once_leave_nothing(tmp_path: Path) -> None:
    names = [f"sha256-{number:02}" for number in range(20)]
    for name in names:
        (tmp_path / "kept" / name / "users").mkdir(parents=True)
        (tmp_path / "kept" / name / "content").touch(0o400)
    going = [subprocess.Popen(script("let_go", str(tmp_path), "0", name), stdout=subprocess.PIPE) for name in names]
    said = [process.communicate(timeout=60)[0].decode().strip() for process in going]
    assert (said, {process.returncode for process in going}) == (names, {0})
    assert not tmp_path.exists()


def test_only_the_services_own_sessions_are_swept(tmp_path: Path) -> None:
    for key, owner in (("one", "me"), ("two", "another"), ("three", "")):
        (tmp_path / "sessions" / key).mkdir(parents=True)
        if owner:
            (tmp_path / "sessions" / key / "owner").write_text(f"{owner}\n")
    (tmp_path / "incoming" / "four").mkdir(parents=True)
    (tmp_path / "incoming" / "four" / "owner").write_text("me\n")
    for age, found in (("0", ["one", "four"]), ("600", [])):
        done = subprocess.run(script("sweep", str(tmp_path), "me", age), capture_output=True, text=True, check=True)
        assert done.stdout.split() == found


def test_the_root_can_be_below_a_variable_of_the_persons(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SCRATCH": str(tmp_path)}
    for directory, wanted in (("$SCRATCH/a b", "a b"), (".sublet", ".sublet"), ("~/x", "x")):
        done = subprocess.run(script("root", directory), capture_output=True, text=True, env=environment, check=True)
        assert done.stdout == f"{tmp_path.resolve()}/{wanted}\n"
    done = subprocess.run(script("root", "$NONE/x"), capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    assert "$NONE" in done.stderr
