"""The sites of the testbed are real, and leave nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.sites import COMMAND, Site, control, running, succeed


def leftovers(name: str) -> list[str]:
    """All that this machine still has of a site."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    words = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout.splitlines()
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


def test_a_code_is_good_for_one_login_where_the_site_says_so(new_site: Callable[..., Site]) -> None:
    site = new_site("--one-time-codes", "--nodes", "1")
    code = site.fresh_code()
    assert site.ssh("keyholder", "hostname", code=code).stdout == "login\n"
    assert site.ssh("keyholder", "hostname", code=code).returncode == 255


def test_compute_nodes_have_no_way_out(site: Site) -> None:
    assert "default" not in site.on("c1", "ip", "route")
    assert "Network is unreachable" in site.on(
        "c1", "bash", "-c", f"exec 2>&1; : </dev/tcp/{site.facts['here']}/22", check=False
    )


def test_limits_of_a_partition_are_enforced_by_default_and_not_by_a_lax_site(
    site: Site, new_site: Callable[..., Site]
) -> None:
    lax = new_site("--lax", "--nodes", "1")
    too_long = ["sbatch", "--parsable", "-p", "debug", "-t", "60", "--wrap", "true"]
    assert site.on("researcher@login", *too_long, check=False) == ""
    assert lax.on("researcher@login", *too_long).strip().isdigit()


def test_a_node_without_power_is_down_and_comes_back(new_site: Callable[..., Site]) -> None:
    site = new_site("--nodes", "2", "--slurm", "MessageTimeout=2", "--slurm", "SlurmdTimeout=2")

    def state() -> str:
        return site.on("ctl", "sinfo", "-h", "-n", "c2", "-o", "%T").split()[0]

    site.on("c2", "touch", "/var/on-its-disk", "/tmp/in-its-memory")
    site.crash("c2")
    site.wait(lambda: state().startswith("down"))
    site.boot("c2")
    site.wait(lambda: state() == "idle")
    assert site.on("c2", "ls", "/var/on-its-disk") == "/var/on-its-disk\n"
    assert site.on("c2", "ls", "/tmp") == ""


def test_a_site_whose_owner_was_killed_is_swept(swept: None) -> None:
    name = f"t{os.getpid()}-orphan"
    owner = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    done = control("up", name, "--nodes", "1", "--owner", str(owner.pid))
    try:
        assert name not in control("sweep").stdout
    finally:
        owner.kill()
        owner.communicate()
    assert (done.returncode, succeed(control("sweep"))) == (0, f"stopped {name}\n")
    assert leftovers(name) == []


def test_an_ordinary_user_is_told_why_there_is_no_site() -> None:
    nobody = 65534 if os.geteuid() == 0 else os.geteuid()
    done = subprocess.run(
        ["/usr/bin/env", "python3", COMMAND[1], "up", "any"], capture_output=True, text=True, user=nobody, cwd="/"
    )
    assert (done.returncode, done.stderr) == (77, "SKIP: a site in namespaces needs root\n")
