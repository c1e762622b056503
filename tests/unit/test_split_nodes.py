"""What a far half says of its node, and what its bridge and its jobs make of it."""

from __future__ import annotations

import io
import tarfile
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.annexes.pilots.bundle import PilotPlan
from sublet.annexes.pilots.own import Contact
from sublet.annexes.split.bridge import node_configuration
from sublet.annexes.split.far_ads import ad_here, find_assigned_gpus
from sublet.annexes.split.far_bundle import far_bundle

AD = 'ClusterId = 7\nCmd = "/somewhere/run"\nEnvironment = "A=1"\nTransferInput = "data"\nOwner = "alice"\n'


def test_a_bridge_has_what_its_node_has() -> None:
    facts = {"cores": "48", "memory": "190000", "left": "600", "machine": "c7", "containers": "yes", "gpus": "0,3"}
    lines = node_configuration({**facts, "tools": "sh=/bin/sh"}, 1000).splitlines()
    assert "NUM_CPUS = 48" in lines
    assert "MEMORY = 190000" in lines
    assert "SubletEnd = 1600" in lines  # by the bridge's own clock: the two need not agree
    assert "MACHINE_RESOURCE_GPUs = CUDA0 CUDA3" in lines
    assert "HasSIF = True" in lines
    assert "NETWORK_HOSTNAME = c7" in lines, "$$(Machine) is the node, not the bridge"


@pytest.mark.parametrize(
    ("gpus", "line"),
    [
        ("", ""),
        ("2", "MACHINE_RESOURCE_GPUs = CUDA2"),
        ("GPU-8a1b,GPU-9c2d", "MACHINE_RESOURCE_GPUs = GPU-8a1b GPU-9c2d"),
        ("0 $(sh) ;x", "MACHINE_RESOURCE_GPUs = CUDA0"),
    ],
)
def test_gpus_are_offered_by_the_names_that_the_node_gives_them(gpus: str, line: str) -> None:
    lines = [one for one in node_configuration({"gpus": gpus}, 0).splitlines() if "GPUs" in one]
    assert lines == ([line] if line else [])


def test_a_node_that_says_nonsense_is_offered_as_little_as_there_can_be() -> None:
    lines = node_configuration({"cores": "-4", "memory": "all", "machine": 'c1"\nSTART = True'}, 0).splitlines()
    assert "NUM_CPUS = 1" in lines
    assert "MEMORY = 1024" in lines
    assert not any(line.startswith(("START =", "NETWORK_HOSTNAME")) for line in lines)


def test_a_job_sees_the_gpus_that_its_slot_was_given(tmp_path: Path) -> None:
    given = find_assigned_gpus('Name = "slot1_1@x"\nAssignedGPUs = "CUDA1, CUDA3"\n')
    assert given == "1,3"
    ad = ad_here(AD, str(tmp_path), "lease", given)
    assert 'Environment = "A=1 CUDA_VISIBLE_DEVICES=1,3"' in ad
    assert find_assigned_gpus('AssignedGPUs = "GPU-8a1b"\n') == "GPU-8a1b"
    assert find_assigned_gpus("Name = 1\n") == ""


def test_a_job_runs_in_its_sandbox_and_transfers_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    lines = ad_here(AD, str(tmp_path), "lease").splitlines()
    assert f'Cmd = "{tmp_path}/run"' in lines
    assert 'ShouldTransferFiles = "NO"' in lines
    assert not any(line.startswith(("TransferInput", 'Owner = "alice"')) for line in lines)


def test_nothing_secret_of_htcondor_travels_to_the_node() -> None:
    to = Contact("192.0.2.7:9618", "sublet@ab.sublet", "ann@ab.sublet")
    plan = PilotPlan("an-annex", "a-lease", 1, False, timedelta(minutes=5), timedelta(hours=2), to)
    with tarfile.open(fileobj=io.BytesIO(far_bundle(plan, timedelta(minutes=4), "", ("sh",)))) as archive:
        names = {entry.name for entry in archive if entry.isfile()}
    assert names == {"values", "ask.sh", "pilot.sh", "condor_config", "far.py", "in_sandbox"}
