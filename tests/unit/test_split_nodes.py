"""What a far half says of its node, and what its bridge and its jobs make of it."""

from __future__ import annotations

import io
import subprocess
import tarfile
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.annexes.pilots.bundle import PilotPlan, far
from sublet.annexes.pilots.own import Contact
from sublet.annexes.split.bridge import BEFORE_JOB, node_configuration
from sublet.annexes.split.far_ads import ad_here, find_assigned_gpus, has_exit
from sublet.annexes.split.far_bundle import IN_SANDBOX, far_bundle
from sublet.annexes.split.far_programs import NotStartable, describe, find_obstacle
from sublet.annexes.split.far_starting import write_manifest

AD = 'ClusterId = 7\nCmd = "/somewhere/run"\nEnvironment = "A=1"\nTransferInput = "data"\nOwner = "alice"\n'


def test_a_bridge_has_what_its_node_has() -> None:
    facts = {"cores": "48", "memory": "190000", "left": "600", "machine": "c7", "containers": "yes", "gpus": "0,3"}
    lines = node_configuration({**facts, "tools": "sh=/bin/sh"}, 1000).splitlines()
    assert "NUM_CPUS = 48" in lines
    assert "MEMORY = 190000" in lines
    assert "SubletEnd = 1600" in lines  # by the bridge's own clock: the two need not agree
    assert "MACHINE_RESOURCE_GPUs = CUDA0 CUDA3" in lines
    assert {"HasSIF = True", "HasSandboxImage = True"} <= set(lines)
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


def give_program(sandbox: Path) -> str:
    """A sandbox with the program of the job."""
    (sandbox / "run").write_text("#!/bin/sh\n")
    return str(sandbox)


def test_a_job_sees_the_cores_and_gpus_that_its_slot_was_given(tmp_path: Path) -> None:
    machine = 'Name = "slot1_1@x"\nAssignedGPUs = "CUDA1, CUDA3"\nCpus = 2\n'
    assert find_assigned_gpus(machine) == "1,3"
    sandbox = give_program(tmp_path)
    ad = ad_here(AD.replace("A=1", "A=1 MKL_NUM_THREADS=7"), sandbox, "lease", machine)
    assert "OMP_NUM_THREADS=2 " in ad
    assert "OPENBLAS_NUM_THREADS=2 " in ad
    assert "MKL_NUM_THREADS=2" not in ad, "its own environment has precedence"
    assert "CUDA_VISIBLE_DEVICES=1,3 " in ad
    assert "CUDA_VISIBLE_DEVICES=10000 " in ad_here(AD, sandbox, "lease", "Cpus = 2\n"), "it leaves others' GPUs alone"
    assert find_assigned_gpus('AssignedGPUs = "GPU-8a1b"\n') == "GPU-8a1b"
    assert find_assigned_gpus("Name = 1\n") == ""


def test_a_job_runs_in_its_sandbox_and_transfers_nothing_there(tmp_path: Path) -> None:
    lines = ad_here(AD, give_program(tmp_path), "lease").splitlines()
    assert f'Cmd = "{tmp_path}/run"' in lines
    assert 'ShouldTransferFiles = "NO"' in lines
    assert not any(line.startswith(("TransferInput", 'Owner = "alice"')) for line in lines)


def test_stdout_and_stderr_of_one_file_stay_together_and_stdin_is_found_below_a_directory(tmp_path: Path) -> None:
    sandbox = give_program(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "words").touch()
    ad = ad_here(f'{AD}Out = "job.txt"\nErr = "job.txt"\nIn = "data/words"\n', sandbox, "lease").splitlines()
    assert ['Out = "_condor_stdout"' in ad, 'Err = "_condor_stdout"' in ad] == [True, True]
    assert f'In = "{tmp_path}/data/words"' in ad
    apart = ad_here(f'{AD}Out = "/dev/null"\nErr = "/dev/null"\n', sandbox, "lease").splitlines()
    assert 'Err = "_condor_stderr"' in apart
    with pytest.raises(NotStartable, match="as standard input: No such file"):
        ad_here(f'{AD}In = "gone"\n', sandbox, "lease")


PROGRAMS = [
    (b"#!/bin/sh\necho hi\n", ""),
    (b"#! /bin/sh -e\n", ""),
    (b"#!/no/such/python\n", "No such file or directory (its interpreter '/no/such/python')"),
    (b"echo no first line\n", "Exec format error"),
    (b"\x7fELF\x02\x01rest\x00", ""),
]


@pytest.mark.parametrize(("content", "why"), PROGRAMS)
def test_a_program_that_can_not_be_executed_is_noticed_on_every_node(content: bytes, why: str, tmp_path: Path) -> None:
    """Behind a job wrapper HTCondor doesn't see it: it would start the job for ever, or take it for one that ran."""
    (program := tmp_path / "it").write_bytes(content)
    program.chmod(0o755)
    hook = ["sh", "-c", far("check_job").decode()]
    for sent in ("true", "false"):
        ad = f'Cmd = "{"/home/ann" if sent == "true" else tmp_path}/it"\nTransferExecutable = {sent}\n'
        done = subprocess.run(
            hook, input=ad, env={"_CONDOR_SCRATCH_DIR": str(tmp_path)}, capture_output=True, text=True
        )
        assert (done.returncode, why in done.stdout, bool(done.stdout)) == (int(bool(why)), True, bool(why)), done
    code = find_obstacle(str(program))
    assert (bool(code), why in describe(code, str(program))) == (bool(why), True)


@pytest.mark.parametrize("ad", ['Cmd = "/no/such/it"\nTransferExecutable = false\n', 'Cmd = "/home/ann/gone"\n'])
def test_a_program_that_is_not_there_holds_its_job_and_one_in_an_image_is_not_looked_at(
    ad: str, tmp_path: Path
) -> None:
    hook = ["sh", "-c", far("check_job").decode()]
    environment = {"_CONDOR_SCRATCH_DIR": str(tmp_path)}
    done = subprocess.run(hook, input=ad, env=environment, capture_output=True, text=True)
    assert (done.returncode, "No such file or directory" in done.stdout) == (1, True)
    inside = subprocess.run(hook, input=f'{ad}ContainerImage = "tool.sif"\n', env=environment, text=True)
    assert inside.returncode == 0


def test_nothing_secret_of_htcondor_travels_to_the_node() -> None:
    to = Contact("192.0.2.7:9618", "sublet@ab.sublet", "ann@ab.sublet")
    plan = PilotPlan("an-annex", "a-lease", 1, False, timedelta(minutes=5), timedelta(hours=2), to)
    with tarfile.open(fileobj=io.BytesIO(far_bundle(plan, timedelta(minutes=4), "", ("sh",)))) as archive:
        names = {entry.name for entry in archive if entry.isfile()}
    assert names == {"values", "ask.sh", "pilot.sh", "condor_config", "far.py", "in_sandbox"}


@pytest.mark.parametrize(
    ("ad", "told"),
    [
        ('JobSuccessExitCode = 3\nWhenToTransferOutput = "ON_SUCCESS"\n', "JobSuccessExitCode = 0\n"),
        ('JobSuccessExitCode = 3\nWhenToTransferOutput = "ON_EXIT"\n', ""),
    ],
)
def test_the_starter_of_a_bridge_does_not_judge_by_an_exit_code_that_it_does_not_see(
    ad: str, told: str, tmp_path: Path
) -> None:
    program = tmp_path / "before_job"
    program.write_bytes(BEFORE_JOB)
    environment = {"PATH": "/usr/bin:/bin", "_CONDOR_SCRATCH_DIR": str(tmp_path)}
    done = subprocess.run(["sh", program], input=ad, capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == told
    assert (tmp_path / ".job.ad.out").stat().st_size == 16384


def test_a_deferred_job_is_not_deferred_again_on_its_node_which_would_be_too_late(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("#!/bin/sh\n")
    ad = ad_here(f"{AD}DeferralTime = 1795071469\nDeferralWindow = 0\nDeferralPrepTime = 300\n", str(tmp_path), "lease")
    assert "Deferral" not in ad


@pytest.mark.parametrize(("ad", "told"), [("ExitCode = 3\n", True), ("ExitSignal = 9\n", True), ("", False)])
def test_only_a_job_that_was_started_has_ended(ad: str, told: bool) -> None:
    assert has_exit(f'JobState = "Exited"\n{ad}') is told
    assert not has_exit("ExitCode = undefined\n")


@pytest.mark.parametrize(("named", "place"), [("", "7_2_manifest"), ('ManifestDir = "lists"\n', "lists")])
def test_a_job_gets_its_own_variables_and_its_manifest_has_them(tmp_path: Path, named: str, place: str) -> None:
    (sandbox := tmp_path / "slot1_3-42.ab" / "sandbox").mkdir(parents=True)
    (tmp_path / "in_sandbox").write_bytes(IN_SANDBOX)
    write_manifest(f"ClusterId = 7\nProcId = 2\nManifestDesired = true\n{named}", str(sandbox.parent))
    words = ("sh", str(tmp_path / "in_sandbox"), "/bin/sh", "-c", "echo $attempt $manifest $_CONDOR_SLOT")
    own = {"A": "two  words", "B": "it's", "PATH": "/usr/bin:/bin", "attempt": "5", "manifest": "mine"}
    done = subprocess.run(words, cwd=sandbox, env=own, capture_output=True, text=True, check=True)
    assert done.stdout == "5 mine slot1_3\n"
    said = (sandbox / place / "environment").read_text()
    assert said.startswith("A=two'  'words B=it" + "'" * 4 + "s "), "as HTCondor writes it"
    assert f" TMPDIR={sandbox} " in said
    assert "LC_CTYPE" not in said, "nothing of the program that writes it"


def test_a_manifest_is_written_below_its_sandbox_alone_and_only_if_it_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "sandbox").mkdir()
    for ad in ("ClusterId = 7\n", 'ManifestDesired = true\nManifestDir = "/etc"\n', "ManifestDesired = false\n"):
        write_manifest(ad, str(tmp_path))
        assert not (tmp_path / "manifest").exists()
