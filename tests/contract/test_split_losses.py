"""What is lost on the way between the halves of a split pilot: links, nodes, and a relay that is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from sublet.annexes.split import near_half
from tests.contract.carrying import Split, children, files_of, is_forgotten
from tests.serving import eventually


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
    eventually(lambda: "SubletFarAlive = False" in split.probe(0), "what the slots say")
    eventually(lambda: "SubletFarReady = True" in split.probe(1), "what the slots say")
    assert lost.process.poll() is None  # it never ends by itself: the job would be completed, or held
    lost.remove()
    assert lost.ends() == 0
    (tmp_path / "go").touch()
    assert other.ends() == 0
    eventually(lambda: is_forgotten(split), "nothing more to stop")


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
    eventually(lambda: "SubletFarReady = False" in split.probe(), "what the slots say")
    eventually(lambda: "SubletFarAlive = True" in split.probe(), "what the slots say")
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
    unsent = split.job(f"touch {tmp_path}/unwanted")
    eventually(lambda: split.state()["attempts"].get("queued") == 1, "a job that can't be sent")
    unsent.remove()
    (tmp_path / "go").touch()
    eventually(lambda: any(name.startswith("out/") for name in files_of(split.spool)), "a result in the spool")
    (tmp_path / "gone").rename(split.noise)
    eventually(lambda: sum(split.state()["refused"].values()) == 1, "a refusal")
    assert not (job.scratch / "result").exists()
    eventually(lambda: split.alive(0), "its new life under another epoch")
    eventually(lambda: not any(name.startswith(("out/", "in/")) for name in files_of(split.spool)), "an empty spool")
    eventually(lambda: is_forgotten(split), "nothing more to stop")
    assert not (tmp_path / "unwanted").exists()


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


def test_a_node_lives_while_it_takes_long_to_unpack_a_sandbox(splits: Callable[..., Split]) -> None:
    split = splits()
    split.relay()
    split.far(0)
    eventually(lambda: split.alive(0), "a node")
    (split.spool / "in" / "0").mkdir(parents=True, exist_ok=True)
    os.mkfifo(split.spool / "tmp" / "slow")  # a file that comes no faster than it is written, as on a slow file system
    (split.spool / "tmp" / "slow").rename(split.spool / "in" / "0" / "slot1_1-1.aa.tar")
    eventually((split.spool / "tmp" / "taken.slot1_1-1.aa.tar").exists, "an attempt that is taken")
    with (split.spool / "tmp" / "taken.slot1_1-1.aa.tar").open("wb") as archive:
        beats = split.beats(0)
        eventually(lambda: split.beats(0) > beats + 3, "heartbeats")
        assert split.alive(0)
        assert split.state()["nodes"]["0"]["runs"] == 1, "it has to do with it"
        archive.write(bytes(1024))
    eventually(lambda: (split.spool / "out" / "slot1_1-1.aa.bad").exists() or split.state()["refused"], "its end")


def test_an_attempt_that_comes_to_its_node_twice_is_begun_once(splits: Callable[..., Split], tmp_path: Path) -> None:
    """As when a relay dies before it has noted that the spool has it."""
    split = splits()
    relay = split.relay()
    split.far(0)
    job = split.job(f"echo once >> {tmp_path}/witness; while [ ! -e {tmp_path}/go ]; do sleep 0.1; done; exit 5")
    eventually((tmp_path / "witness").exists, "a running job")
    relay.kill()
    relay.wait()
    (noted,) = (split.near / "attempts").iterdir()
    noted.write_text(noted.read_text().replace('"stored"', '"queued"'))
    split.relay()
    eventually(lambda: split.state()["attempts"] == {"stored": 1}, "an attempt that was sent once more")
    eventually(lambda: not files_of(split.spool / "in"), "and taken")
    (tmp_path / "go").touch()
    assert job.ends() == 0
    assert (job.told(), (tmp_path / "witness").read_text()) == ("ExitCode = 5\n", "once\n")


def test_a_result_that_can_not_be_read_is_told_with_the_reason_and_its_job_not_run_again(
    splits: Callable[..., Split], tmp_path: Path
) -> None:
    split = splits()
    split.relay()
    split.far(0)
    job = split.job(f"while [ ! -e {tmp_path}/go ]; do sleep 0.1; done")
    eventually(lambda: split.state()["attempts"] == {"stored": 1}, "an attempt")
    (noted,) = (split.near / "attempts").glob("*.json")
    (split.spool / "out" / f"{noted.stem}.tar").write_bytes(b"no archive")
    assert job.ends() == 1
    assert job.process.stdout
    assert b"it ended, and its results could not be brought back: " in job.process.stdout.read()


def test_a_job_whose_files_can_not_be_read_here_is_told_the_reason(splits: Callable[..., Split]) -> None:
    split = splits()
    split.relay()
    split.far(0)
    eventually(lambda: split.alive(0), "a node")
    (scratch := split.directory / "scratch").mkdir()
    message = {"op": "submit", "id": "slot1_1-1", "attempt": "slot1_1-1.aa", "node": 0, "sandbox": str(scratch)}
    message |= {"job_ad": f"{scratch}/gone", "scratch": str(scratch)}
    answer = near_half.call(str(split.near), message, patience=0, seconds=20)
    assert answer["failed"] == "its files could not be read here: No such file or directory"


def test_a_job_whose_files_are_gone_before_they_are_sent_stops_no_other(splits: Callable[..., Split]) -> None:
    split = splits()
    split.relay()
    split.far(0)
    gone = {"op": "submit", "id": "slot1_9-9", "attempt": "slot1_9-9.aa", "node": 0}
    gone |= dict.fromkeys(("sandbox", "job_ad", "scratch"), str(split.directory / "gone"))
    eventually(lambda: split.alive(0), "a node")
    assert near_half.call(str(split.near), gone, patience=0, seconds=20) == {"gone": True}
    job = split.job("echo goes on")
    assert job.ends() == 0
    eventually(lambda: not list((split.near / "attempts").iterdir()), "nothing of it that is noted")
