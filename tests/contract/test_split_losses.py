"""What is lost on the way between the halves of a split pilot: links, nodes, and a relay that is killed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

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
    assert "SubletFarAlive = False" in split.probe(0)
    assert "SubletFarReady = True" in split.probe(1)
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
