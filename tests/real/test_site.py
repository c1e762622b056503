"""The sites of the testbed are real, and leave nothing."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testbed.network import is_used

from tests.sites import CANNOT, COMMAND, Site, control, running, succeed

pytestmark = pytest.mark.soak  # of the testbed, not of Sublet: all others stand on it
TOO_LONG = ("sbatch", "--parsable", "-p", "debug", "-t", "60", "--wrap", "true")
SLURMD = 6818
ODD = ("--lax", "--one-time-codes", "--cgroups", "--ap", "--nat", "--bashrc", "noisy", "--nodes", "2")


@pytest.fixture(scope="module")
def odd_site(swept: None) -> Iterator[Site]:
    """A site that differs from the usual one wherever it can."""
    with running(*ODD) as site:
        yield site


def dial(site: Site, machine: str, address: str, port: int, seconds: int = 20) -> str:
    """What comes of a connection from a machine of the site."""
    attempt = f"exec 2>&1; timeout {seconds} bash -c ': </dev/tcp/{address}/{port}' && echo joined"
    return site.on(machine, "bash", "-c", attempt, check=False)


def leftovers(name: str) -> list[str]:
    """All that this machine still has of a site."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    words = subprocess.run(
        ["ps", "-ww", "-eo", "pid,args"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    found = [line for line in [*mounts, *words] if f"/{name}" in line]
    return [*found, *(name for known in control("list").stdout.split() if known == name)]


def networks(site: Site) -> list[str]:
    """The namespaces, links and routes of the addresses that a site had."""
    index = site.host.split(".")[2]
    said = [
        subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout.splitlines()
        for words in (["netns", "list"], ["-o", "link"], ["route", "show", "table", "all"])
    ]
    return [line for lines in said for line in lines if f"sublet{index}-" in line or f"10.201.{index}.0" in line]


def test_a_job_runs_on_two_nodes_and_stopping_the_site_leaves_nothing(swept: None) -> None:
    with running() as site:
        assert sorted(site.on("researcher@login", "srun", "-N2", "hostname").split()) == ["c1", "c2"]
        assert networks(site)
        assert leftovers(site.name)
    assert networks(site) == []
    assert leftovers(site.name) == []


def test_two_sites_are_up_at_once_and_know_nothing_of_each_other(site: Site, fresh_site: Site) -> None:
    assert site.host != fresh_site.host
    for one in (site, fresh_site):
        said = one.on("researcher@login", "scontrol", "show", "config")
        assert f"ClusterName             = {one.name}" in said


def test_files_at_home_are_the_same_on_every_machine(site: Site) -> None:
    site.on("researcher@login", "sh", "-c", "echo here >shared-file")
    assert site.on("researcher@c1", "cat", "shared-file") == "here\n"


def test_login_needs_the_password_and_the_code(site: Site) -> None:
    password = site.facts["password"]
    right = site.ssh("researcher", "hostname", password=password, code=site.fresh_code())
    assert right.stdout == "login\n"
    assert site.ssh("researcher", "true", password="wrong", code=site.fresh_code()).returncode == 255
    assert site.ssh("researcher", "true", password=password, code="000000").returncode == 255


def test_login_by_key_needs_the_code_as_well(site: Site) -> None:
    assert site.ssh("keyholder", "hostname", code=site.fresh_code()).stdout == "login\n"
    assert site.ssh("keyholder", "hostname", options=("-o", "BatchMode=yes")).returncode == 255


def test_a_service_account_logs_in_by_its_key_alone(site: Site) -> None:
    assert site.ssh("service", "id", "-un", options=("-o", "BatchMode=yes")).stdout == "service\n"


def test_compute_nodes_have_no_way_out(site: Site) -> None:
    assert "default" not in site.on("c1", "ip", "route")
    assert "Network is unreachable" in dial(site, "c1", site.facts["here"], 22)


def test_the_limits_of_a_partition_are_enforced(site: Site) -> None:
    assert site.on("researcher@login", *TOO_LONG, check=False) == ""


def test_a_lax_site_accepts_what_it_will_never_run(odd_site: Site) -> None:
    job = odd_site.on("researcher@login", *TOO_LONG).strip()
    odd_site.wait(lambda: "PartitionTimeLimit" in odd_site.on("ctl", "squeue", "-h", "-j", job, "-o", "%r"))
    odd_site.on("ctl", "scancel", job)


def test_a_code_is_good_for_one_login_where_the_site_says_so(odd_site: Site) -> None:
    code = odd_site.fresh_code()
    assert odd_site.ssh("keyholder", "hostname", code=code).stdout.endswith("login\n")
    assert odd_site.ssh("keyholder", "hostname", code=code).returncode == 255


def test_an_unfriendly_shell_prints_before_every_command(odd_site: Site) -> None:
    said = odd_site.ssh("service", "hostname", options=("-o", "BatchMode=yes"))
    assert said.stdout.startswith("Welcome!")
    assert said.stderr


def test_nodes_connect_outward_through_the_login_host_and_nobody_inward(odd_site: Site) -> None:
    with socket.create_server((odd_site.facts["here"], 0)) as server:
        assert dial(odd_site, "c1", *server.getsockname()) == "joined\n"
        caller = server.accept()[1][0]
    assert caller == odd_site.host
    assert dial(odd_site, "login", odd_site.facts["addresses"]["c1"], SLURMD) == "joined\n"
    assert "joined" not in dial(odd_site, "ap", odd_site.facts["addresses"]["c1"], SLURMD, seconds=1)


def test_an_ordinary_user_beside_the_site_logs_in_and_shares_no_files_with_it(odd_site: Site) -> None:
    said = odd_site.on("researcher@ap", "ssh", "-o", "BatchMode=yes", f"service@{odd_site.name}", "hostname")
    assert said.endswith("login\n")
    assert odd_site.on("researcher@ap", "ls", "/home") == "researcher\nrival\n"


def test_a_job_that_takes_more_memory_than_it_asked_for_is_ended(odd_site: Site) -> None:
    hungry = "head -c 400m /dev/zero | tail -c 300m >/dev/null"
    submit = ["sbatch", "--parsable", "-p", "shared", "--mem=50", "-o", "/dev/null", "--wrap", hungry]
    job = odd_site.on("researcher@login", *submit).strip()
    odd_site.wait(lambda: "OUT_OF_MEMORY" in odd_site.on("ctl", "squeue", "-h", "-t", "all", "-j", job, "-o", "%T"))


def test_a_node_without_power_is_down_and_comes_back(fresh_site: Site) -> None:
    def state() -> str:
        return fresh_site.on("ctl", "sinfo", "-h", "-n", "c1", "-o", "%T", check=False)

    fresh_site.on("c1", "touch", "/var/on-its-disk", "/tmp/in-its-memory")
    fresh_site.crash("c1")
    fresh_site.wait(lambda: state().startswith("down"))
    fresh_site.boot("c1")
    fresh_site.wait(lambda: state().startswith("idle\n"))
    assert fresh_site.on("c1", "ls", "/var/on-its-disk") == "/var/on-its-disk\n"
    assert fresh_site.on("c1", "ls", "/tmp") == ""


def test_the_controller_knows_its_jobs_after_a_power_failure(odd_site: Site) -> None:
    job = odd_site.on("researcher@login", "sbatch", "--parsable", "--hold", "--wrap", "true").strip()
    odd_site.on("ctl", "sync")
    odd_site.wait(lambda: f"job.{job}" in odd_site.on("ctl", "sh", "-c", "ls /var/spool/slurmctld/hash.*"))
    odd_site.wait(lambda: "job_state\n" in odd_site.on("ctl", "ls", "/var/spool/slurmctld"))
    odd_site.crash("ctl")
    odd_site.boot("ctl")
    assert odd_site.on("ctl", "squeue", "-h", "-j", job, "-o", "%T") == "PENDING\n"
    odd_site.on("ctl", "scancel", job)


def test_a_silent_login_host_answers_again_when_its_cable_is_back(odd_site: Site) -> None:
    by_key = ("-o", "BatchMode=yes")
    odd_site.pull_cable("login")
    assert odd_site.ssh("service", "true", options=(*by_key, "-o", "ConnectTimeout=1")).returncode == 255
    odd_site.put_cable("login")
    assert odd_site.ssh("service", "true", options=by_key).returncode == 0


def test_the_box_has_a_newer_slurm_with_accounts_and_apptainer(new_site: Callable[..., Site]) -> None:
    site = new_site("--base", "box", "--accounts", "--nodes", "1", "--latency", "20")
    assert site.facts["slurm"].startswith("26.")
    root = "mkdir -p root/bin && cp /bin/busybox root/bin/ && ln -s busybox root/bin/sh"
    site.on("researcher@login", "sh", "-c", root)
    words = ["srun", "-A", "beta", "-p", "shared", "apptainer", "-q", "exec", "root", "/bin/sh", "-c", "echo contained"]
    assert site.on("researcher@login", *words) == "contained\n"
    assert site.ssh("service", "hostname", options=("-o", "BatchMode=yes")).stdout == "login\n"


def test_a_site_that_cannot_start_says_why_and_leaves_nothing(site: Site) -> None:
    name = f"t{os.getpid()}-broken"
    done = control("up", name, "--nodes", "1", "--slurm", "SelectType=select/nonsense")
    assert done.returncode == 1
    assert "ctl gave up" in done.stderr
    assert "select/nonsense" in done.stderr
    assert leftovers(name) == []


def test_a_site_whose_owner_was_killed_is_swept(swept: None) -> None:
    name = f"t{os.getpid()}-orphan"
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as owner:
        done = control("up", name, "--nodes", "1", "--owner", str(owner.pid))
        kept = control("sweep").stdout
        owner.kill()
    if done.returncode == CANNOT:
        pytest.skip(done.stderr)
    assert name not in kept
    assert f"stopped {name}\n" in succeed(control("sweep"))
    assert leftovers(name) == []


def test_a_route_that_somebody_left_keeps_no_site_from_starting(swept: None) -> None:
    route = ["unreachable", "10.201.250.0/24"]
    subprocess.run(["ip", "route", "add", *route], check=True)
    try:
        assert is_used(250)  # so it is no site's to take
    finally:
        subprocess.run(["ip", "route", "del", *route], check=True)
    assert not is_used(250)


def test_an_ordinary_user_is_told_why_there_is_no_site() -> None:
    done = subprocess.run(["unshare", "--user", *COMMAND, "up", "any"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (77, "SKIP: a site in namespaces needs root\n")
