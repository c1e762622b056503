"""Disks without room, on the way between the halves of a split pilot: nothing is lost, and nothing runs twice."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.contract.carrying import Job, Split, again, files_of, is_forgotten
from tests.serving import eventually

FULL = b"No space left on device"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that the spool is on, with 2 MB of room."""
    with small(tmp_path / "shared") as place:
        yield place


@contextmanager
def small(place: Path) -> Iterator[Path]:
    """A directory with 2 MB of room."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def enlarge(place: Path) -> None:
    """Give a small disk room."""
    subprocess.run(["mount", "-o", "remount,size=64m", place], check=True)


def fill(place: Path) -> Path:
    """Leave no room on a small disk; the file that takes it."""
    file = place / "filler"
    with file.open("wb", buffering=0) as target, suppress(OSError):
        while target.write(bytes(4096)):
            pass
    return file


def said(job: Job) -> bytes:
    """The reason for which a job is held."""
    assert job.process.stdout
    return job.process.stdout.read()


# The spool


def test_an_input_that_the_spool_never_has_room_for_is_told_with_the_reason_and_its_neighbours_go_on(
    small_disk: Path, splits: Callable[..., Split]
) -> None:
    split = splits(room=2.0)
    split.relay()
    split.far(0)
    large = split.job("true", big=os.urandom(4_000_000))
    small = [split.job(f"echo {number}") for number in range(5)]
    assert [job.ends() for job in small] == [0] * 5
    assert large.ends() == 1
    reason = said(large)
    assert FULL in reason
    assert str(split.spool).encode() in reason, "where room is wanted"
    assert (split.state()["links"], split.alive(0)) == (1, True)
    assert not [name for name in files_of(split.spool) if name.startswith("tmp/put")]


def test_an_input_that_finds_no_room_waits_for_some_and_its_job_runs_once(
    small_disk: Path, splits: Callable[..., Split]
) -> None:
    split = splits()
    split.relay()
    split.far(0)
    content = os.urandom(4_000_000)
    job = split.job("cat big > copy; echo once >> ../../../witness", big=content)
    eventually(
        lambda: split.state()["waits"] == [f"files of 1 job wait to be stored on the cluster: {FULL.decode()}"],
        "a full spool",
    )
    assert split.state()["attempts"] == {"queued": 1}
    enlarge(small_disk)
    assert job.ends() == 0
    assert job.has("copy") == content
    assert next(split.directory.glob("node*/witness")).read_text() == "once\n"


def test_what_an_earlier_agent_left_half_written_is_swept(splits: Callable[..., Split]) -> None:
    split = splits()
    (split.spool / "tmp").mkdir(parents=True)
    for name in ("put.earlier.slot1_1-1.aa", "ans.earlier.0", "w.earlier.lease"):
        (split.spool / "tmp" / name).touch()
    split.relay()
    eventually(lambda: (split.spool / "agent").exists(), "an agent")
    eventually(lambda: files_of(split.spool) == {"agent", "lease"}, "a swept spool")


def test_a_spool_that_is_full_for_longer_than_a_jobs_lease_costs_what_runs_nothing(
    small_disk: Path, splits: Callable[..., Split], tmp_path: Path
) -> None:
    split = splits(dead=3.0)
    split.relay()
    split.far(0, lease=3.0)
    job = split.job(f"echo once >> {tmp_path}/witness; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; exit 4")
    eventually(lambda: (tmp_path / "witness").exists() and split.alive(0), "a running job")
    filler = fill(small_disk)
    full = time.monotonic()
    while time.monotonic() < full + 6:
        assert split.alive(0), "it lives, and can't say anything else"
        time.sleep(0.2)
    (tmp_path / "go").touch()
    filler.unlink()
    assert job.ends() == 0
    assert (job.told(), (tmp_path / "witness").read_text()) == ("ExitCode = 4\n", "once\n")
    eventually(lambda: files_of(split.spool) == {"agent", "lease", "alive/0"}, "an empty spool")
    assert split.state()["links"] == 1


def test_a_job_that_is_removed_while_the_spool_is_full_is_stopped_on_its_node(
    small_disk: Path, splits: Callable[..., Split], tmp_path: Path
) -> None:
    split = splits()
    split.relay()
    split.far(0)
    job = split.job(f"echo $$ > {tmp_path}/pid; exec sleep 60")
    eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "a running job")
    filler = fill(small_disk)
    job.remove()
    assert job.ends() == 0
    pid = int((tmp_path / "pid").read_text())
    eventually(lambda: not Path(f"/proc/{pid}").exists(), "its end there")
    filler.unlink()
    eventually(lambda: files_of(split.spool) == {"agent", "lease", "alive/0"}, "an empty spool")


LARGE = "head -c 4000000 /dev/zero > big; echo once"
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
    enlarge(small_disk)
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
    assert b"its results could not be brought back: " in said(job)


# A node's own disk


@pytest.fixture
def small_node(tmp_path: Path) -> Iterator[Path]:
    """A node's directory, with 2 MB of room."""
    with small(tmp_path / "small-node") as place:
        yield place


def test_a_job_that_its_node_has_no_room_for_waits_for_some_while_its_neighbours_run(
    small_node: Path, splits: Callable[..., Split]
) -> None:
    split = splits()
    split.relay()
    split.far(0, small_node)
    content = os.urandom(4_000_000)
    large = split.job("cat big > copy", big=content)
    eventually(lambda: "No space left" in (split.directory / "log").read_text(), "a full node")
    small = [split.job(f"echo {number}") for number in range(3)]
    assert [job.ends() for job in small] == [0] * 3
    assert large.process.poll() is None
    eventually(lambda: split.state()["attempts"] == {"stored": 1}, "their end")
    enlarge(small_node)
    assert large.ends() == 0
    assert large.has("copy") == content
    assert files_of(small_node) == {"far.py"}, "nothing of it stays on the node"


def test_a_job_that_its_node_never_has_room_for_goes_elsewhere_and_in_the_end_is_told_the_reason(
    small_node: Path, splits: Callable[..., Split]
) -> None:
    split = splits()
    split.relay()
    split.far(0, small_node, room=0.5)
    for last in (False, False, True):
        job = again(split, "", big=os.urandom(4_000_000))
        if not last:
            eventually(lambda: "slot1_1" in split.probe(), "a request to evict it")
            job.remove()
        assert job.ends() == (1 if last else 0)
    assert FULL in said(job)
    job.remove()
    eventually(lambda: is_forgotten(split), "nothing more to stop")
    assert files_of(small_node) == {"far.py"}, "nothing of it stays on the node"


def test_a_job_that_is_removed_while_it_waits_for_room_on_its_node_is_never_started(
    small_node: Path, splits: Callable[..., Split], tmp_path: Path
) -> None:
    split = splits()
    split.relay()
    split.far(0, small_node)
    job = split.job(f"touch {tmp_path}/unwanted", big=os.urandom(4_000_000))
    eventually(lambda: "No space left" in (split.directory / "log").read_text(), "a full node")
    job.remove()
    assert job.ends() == 0
    enlarge(small_node)
    eventually(lambda: is_forgotten(split), "nothing more to stop")
    eventually(lambda: files_of(split.spool) == {"agent", "lease", "alive/0"}, "an empty spool")
    assert not (tmp_path / "unwanted").exists()


# The access point's disk


def test_a_result_that_finds_no_room_at_the_access_point_waits_for_some_and_its_job_runs_once(
    splits: Callable[..., Split], tmp_path: Path
) -> None:
    split = splits()
    split.relay()
    split.far(0)
    with small(tmp_path / "scratch1") as scratch:
        job = split.job(f"{LARGE} >> {tmp_path}/witness")
        waits = [f"results of 1 job wait to be stored here: {FULL.decode()}"]
        eventually(lambda: split.state()["waits"] == waits, "a full disk")
        small_one = split.job("echo hello")
        assert small_one.ends() == 0, "its neighbours go on"
        enlarge(scratch)
        assert job.ends() == 0
        assert (job.told(), len(job.has("big"))) == ("ExitCode = 0\n", 4_000_000)
    assert (tmp_path / "witness").read_text() == "once\n"
    assert split.state()["links"] == 1
    eventually(lambda: files_of(split.spool) == {"agent", "lease", "alive/0"}, "an empty spool")
    eventually(lambda: split.state()["waits"] == [], "nothing that waits")


def test_a_result_that_never_finds_room_at_the_access_point_is_told_with_the_reason_and_its_job_not_run_again(
    splits: Callable[..., Split], tmp_path: Path
) -> None:
    split = splits(keep_results=2.0)
    split.relay()
    split.far(0)
    with small(tmp_path / "scratch1"):
        job = split.job(f"{LARGE} >> {tmp_path}/witness")
        assert job.ends() == 1
        reason = said(job)
    assert b"its results could not be brought back: " in reason
    assert FULL in reason
    assert (tmp_path / "witness").read_text() == "once\n"
    eventually(lambda: files_of(split.spool) == {"agent", "lease", "alive/0"}, "an empty spool")


def test_a_relay_whose_own_disk_is_full_goes_on_and_loses_nothing(splits: Callable[..., Split], tmp_path: Path) -> None:
    with small(tmp_path / "near") as near:
        split = splits()
        relay = split.relay()
        split.far(0)
        early = split.job(f"while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; echo once >> {tmp_path}/witness")
        eventually(lambda: split.state()["attempts"] == {"stored": 1}, "a running job")
        filler = fill(near)
        late = split.job("exit 3")
        (tmp_path / "go").touch()
        assert early.ends() == 0
        assert late.process.poll() is None
        filler.unlink()
        assert late.ends() == 0
        assert late.told() == "ExitCode = 3\n"
        assert (relay.poll(), split.state()["links"]) == (None, 1)
        assert (tmp_path / "witness").read_text() == "once\n"
        split.stop()
