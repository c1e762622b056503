"""What is written for a session's jobs, and the script that runs them on a node, tried with the sh that is here."""

import json
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from sublet.annexes.model.inputs import HAS_IMAGE
from sublet.booking.model.job import Job, Mount, Program
from sublet.booking.model.shape import Amounts, Shape
from sublet.platforms.htcondor.job import JobPlace, description, files_of, placeholder, program, script

KEY = f"key-{uuid4().hex}"  # processes are known by it, and others may try the same on this machine
ODD = ["a b", 'it\'s "quoted"', "two\nlines", ";$(rm -rf $HOME) `id` && x", "-n", "--", "grüße ✓", "\\ * ? [a]", ""]


def job(*argv: str, seconds: float = 60, **changes: Any) -> Job:
    values: dict[str, object] = {
        "program": Program(argv),
        "amounts": Amounts(changes.pop("shape", Shape(1, 1 << 28)), parts=changes.pop("parts", 1)),
        "nodes": (),
        "until": datetime.now(UTC) + timedelta(seconds=seconds),
        "warn": timedelta(0),
    }
    return Job(**(values | changes))  # type: ignore[arg-type]


def laid_out(place: Path, made: Job, seconds: float = 60) -> Path:
    for name in ("work/.sublet", "data"):
        (place / name).mkdir(parents=True, exist_ok=True)
    for name, content in made.program.files.items():
        (place / "work" / name).write_bytes(content)
    for name, content in files_of(made, KEY, timedelta(seconds=seconds), timedelta(seconds=1)).items():
        (place / name).write_bytes(content)
    return place


def start(place: Path, sh: str = "sh", part: str = "0") -> subprocess.Popen[bytes]:
    environment = {"PATH": os.environ["PATH"], "_CONDOR_SCRATCH_DIR": str(place), "SUBLET_PART": part}
    environment["_CONDOR_JOB_AD"] = str(place / ".job.ad")
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sh, "job.sh"], cwd=place, env=environment, **pipes)  # type: ignore[call-overload]


def run(place: Path, sh: str = "sh") -> tuple[dict[str, object], str, str, int]:
    started = start(place, sh)
    out, error = started.communicate(timeout=30)
    return json.loads((place / "record.json").read_text()), out.decode(), error.decode(), started.returncode


@pytest.mark.parametrize("sh", ["dash", "bash"])
def test_a_job_records_its_exit_code_in_every_shell(tmp_path: Path, sh: str) -> None:
    said, out, error, code = run(laid_out(tmp_path, job("sh", "-c", "echo out; echo err >&2; exit 3")), sh)
    assert (said["kind"], said["code"], out, error, code) == ("exited", 3, "out\n", "err\n", 3)
    assert not list(tmp_path.glob(".sublet.*")), "its notes are gone"


@pytest.mark.parametrize("sh", ["dash", "bash"])
def test_a_job_has_a_short_path_to_its_temporary_files_which_goes_with_it(tmp_path: Path, sh: str) -> None:
    place = tmp_path / f"execute-{'x' * 40}"
    _, out, _, _ = run(laid_out(place, job("sh", "-c", 'echo "$TMPDIR"; cd "$TMPDIR" && pwd -P')), sh)
    short, real = out.split()
    assert len(short) <= 40
    assert real == f"{place}/tmp"
    assert not os.path.lexists(short)


@pytest.mark.parametrize("sh", ["dash", "bash"])
def test_what_was_brought_and_is_as_it_was_does_not_travel_back(tmp_path: Path, sh: str) -> None:
    for name in ("same", "odd\n name", "changed", "gone"):
        (tmp_path / "work").mkdir(exist_ok=True)
        (tmp_path / "work" / name).write_text("x")
    run(laid_out(tmp_path, job("sh", "-c", "echo y >>changed; rm gone; echo z >new")), sh)
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == [".sublet", "changed", "new"]


@pytest.mark.parametrize("is_kept", [True, False])
def test_an_image_is_seen_where_the_system_keeps_it_or_as_it_came_with_the_job(tmp_path: Path, is_kept: bool) -> None:
    place, content = tmp_path / "sandbox", tmp_path / "kept" / "sha256-7" / "content"
    brought = job("sh", "-c", "cat ../data/image/image.tar", kept={"data/image/image.tar": "/anywhere/sha256-7"})
    laid_out(place, brought)
    (place / ".job.ad").write_text(f'A = 1\nSubletKept = "{content if is_kept else "shared/sha256-7"}"\n')
    file = content if is_kept else place / "sha256-7"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("image")
    assert run(place)[1] == "image"
    assert (place / "data/image/image.tar").is_symlink() == is_kept


def test_words_and_variables_arrive_as_they_are(tmp_path: Path) -> None:
    script = 'for word; do printf "<%s>" "$word"; done; printf "[%s]" "$ODD"'
    words = ("sh", "-c", script, "sh", *ODD)
    _, out, _, _ = run(laid_out(tmp_path, job(program=Program(words, environment={"ODD": ODD[2] + ODD[3]}))))
    assert out == "".join(f"<{word}>" for word in ODD) + f"[{ODD[2]}{ODD[3]}]"


def test_the_session_s_directory_is_where_the_node_put_it(tmp_path: Path) -> None:
    here = placeholder(KEY)
    files = {".sublet/plan.json": json.dumps({"data": f"{here}/data/x"}).encode()}
    words = ("sh", "-c", 'cat .sublet/plan.json; printf " %s %s" "$WHERE" "$1"', "sh", f"--at={here}/work")
    made = job(program=Program(words, environment={"WHERE": here}, files=files))
    _, out, _, _ = run(laid_out(tmp_path, made))
    assert out == f'{{"data": "{tmp_path}/data/x"}} {tmp_path} --at={tmp_path}/work'


def test_only_files_and_directories_travel_back_and_nothing_is_sealed(tmp_path: Path) -> None:
    mounts = (Mount("data/x", "in/x"),)
    place = laid_out(
        tmp_path, job("sh", "-c", "cat in/x/f; ln -s / away; mkfifo p; mkdir d; : >d/f; chmod 0 d", mounts=mounts)
    )
    (place / "data/x").mkdir()
    (place / "data/x/f").write_text("brought")
    said, out, _, _ = run(place)
    assert (said["kind"], out) == ("exited", "brought")
    assert sorted(
        path.relative_to(place / "work").as_posix() for path in (place / "work").rglob("*") if path.is_file()
    ) == ["d/f"]
    assert not [path for path in (place / "work").rglob("*") if path.is_symlink() or path.is_fifo()]


def test_a_program_that_is_not_there_was_not_started(tmp_path: Path) -> None:
    said, *_ = run(laid_out(tmp_path, job("no-such-program")))
    assert said["kind"] == "not-started"
    assert "no-such-program" in str(said["detail"])


def test_a_kind_can_say_that_nothing_was_run(tmp_path: Path) -> None:
    words = ("sh", "-c", "printf 'staging-failed\\n\"no image\"\\n' >../unstarted; exit 125")
    said, *_ = run(laid_out(tmp_path, job(*words)))
    assert (said["kind"], said["code"], said["detail"]) == ("staging-failed", 125, "no image")


def test_a_kind_can_say_how_its_program_ended(tmp_path: Path) -> None:
    words = ("sh", "-c", "echo '\"the stage pre failed\"' >../detail; exit 3")
    said, *_ = run(laid_out(tmp_path, job(*words)))
    assert (said["kind"], said["code"], said["detail"]) == ("exited", 3, "the stage pre failed")


def test_the_end_of_the_time_stops_every_process(tmp_path: Path) -> None:
    said, out, _, _ = run(laid_out(tmp_path, job("sh", "-c", "setsid sleep 300 & echo $!; sleep 300"), seconds=2))
    assert said["kind"] == "timeout", said
    assert not Path(f"/proc/{out.strip()}/exe").exists()


def test_one_part_leaves_another_alone(tmp_path: Path) -> None:
    places = [laid_out(tmp_path / part, job("sh", "-c", f"sleep {seconds}")) for part, seconds in (("0", 0), ("1", 2))]
    longer = start(places[1], part="1")
    assert run(places[0])[0]["code"] == 0
    longer.communicate(timeout=30)
    assert longer.returncode == 0


def test_a_session_with_an_image_waits_until_that_is_kept_unless_it_is_a_guests() -> None:
    brought = ("program", "shared/sha256-7")
    for guest in ("", "bob"):
        place = JobPlace("/s", annex="a", supplier="x@y", guest=guest)
        text = description(job("true"), KEY, place, timedelta(minutes=1), brought)
        assert ('My.SubletKept = "shared/sha256-7"' in text, "SubletReady" in text) == (not guest, not guest)


def test_a_session_whose_image_is_in_the_caches_of_systems_starts_on_leases_that_have_it_alone() -> None:
    place = JobPlace("/s", annex="a", supplier="x@y", image="docker://shop/tool@sha256:7")
    lines = description(job("true"), KEY, place, timedelta(minutes=1), ("program",)).splitlines()
    assert 'My.SubletKept = "docker://shop/tool@sha256:7"' in lines
    [requirements] = [line for line in lines if line.startswith("requirements")]
    assert requirements.endswith(f"&& {HAS_IMAGE}")
    assert "SubletUntil" not in requirements, "it never starts without"


def test_too_much_memory_stops_it(tmp_path: Path) -> None:
    made = job("python3", "-c", "import time; x = bytearray(200 << 20); time.sleep(60)", shape=Shape(1, 64 << 20))
    said, *_ = run(laid_out(tmp_path, made))
    assert said["kind"] == "out-of-memory"
    assert int(str(said["peak"])) > 64 << 20


def test_who_is_told_to_stop_stops_what_runs_and_tells(tmp_path: Path) -> None:
    place = laid_out(tmp_path, job("sh", "-c", "trap 'echo bye; exit 9' TERM; echo here; while :; do sleep 0.1; done"))
    started = start(place)
    assert started.stdout
    assert started.stdout.readline() == b"here\n"
    started.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + 20
    while started.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert started.stdout.read() == b"bye\n"
    said = json.loads((place / "record.json").read_text())
    assert (said["kind"], said["code"]) == ("terminated", 9)
    started.communicate()


def test_values_stay_values_in_a_description() -> None:
    place = JobPlace("/home/a b/$(HOME)", annex='id"x', supplier="me@ap")
    made = job("true", name="two\nlines queue 5 $(x)", person='p"q', parts=3)
    text = description(made, "key", place, timedelta(seconds=90), ("program", "work"))
    lines = dict(line.split(" = ", 1) for line in text.splitlines() if " = " in line)
    assert text.splitlines()[-1] == "queue 3"
    assert text.count("\nqueue") == 1
    assert lines["batch_name"] == "two lines queue 5 _(x)", "HTCondor expands $$ in attributes, whoever wrote them"
    assert lines["My.SubletTarget"] == '"id\\"x"'
    assert lines["initialdir"] == "/home/a b/$(DOLLAR)(HOME)/parts/$(Process)"
    assert lines["transfer_input_files"] == "../../program, ../../work"
    assert lines["My.SubletTime"] == "90"


def test_what_no_shell_can_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="zero byte"):
        program(job("a\0b"), "key", timedelta(seconds=1), timedelta(seconds=1))


def submit(place: Path, tried: int, *words: str) -> subprocess.CompletedProcess[str]:
    sh = ("sh", "-c", script("submit"), "sublet", str(place), str(tried), *words)
    return subprocess.run(sh, capture_output=True, text=True, timeout=30)


def test_what_was_submitted_is_not_submitted_again(tmp_path: Path) -> None:
    words = ("sh", "-c", "echo x >>runs; echo 12.0")
    first, again = submit(tmp_path, 0, *words), submit(tmp_path, 0, *words)
    assert (first.stdout, again.stdout, first.returncode, again.returncode) == ("12.0\n", "12.0\n", 0, 0)
    assert (tmp_path / "runs").read_text() == "x\n"


def test_a_try_whose_end_nobody_knows_is_not_repeated_by_itself(tmp_path: Path) -> None:
    assert submit(tmp_path, 0, "sh", "-c", "echo lost >&2; exit 9").returncode == 9
    assert submit(tmp_path, 0, "sh", "-c", "echo 12.0").returncode == 75
    assert submit(tmp_path, 1, "sh", "-c", "echo 12.0").stdout == "12.0\n"


def test_of_many_who_submit_at_once_one_does(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        said = list(
            pool.map(lambda _: submit(tmp_path, 0, "sh", "-c", "sleep 0.2; echo x >>runs; echo 12.0"), range(8))
        )
    assert {(one.returncode, one.stdout) for one in said} == {(0, "12.0\n")}
    assert (tmp_path / "runs").read_text() == "x\n"
