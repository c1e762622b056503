"""The seed's `hpc` object and CyberGIS's own file: every field becomes something, or it is said why not."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sublet.access.model.account import Account, fingerprint, host_key
from sublet.access.model.hpc_json import ImportPlan, read_hpc
from sublet.access.model.known_hosts import read_host_keys
from sublet.kernel.errors import BadAccount
from sublet.platforms.slurm.options import ALLOWED

SEED: dict[str, Any] = {
    "keeling_community": {
        "ip": "keeling.earth.illinois.edu",
        "port": 22,
        "is_community_account": True,
        "community_login": {
            "user": "cigi-gisolve",
            "use_local_key": False,
            "external_key": {"private_key_path": "cigi-gisolve.key", "passphrase": None},
        },
        "connector": "SlurmConnector",
        "root_path": "/tmp",
    }
}
WILD: dict[str, Any] = {
    "ip": "expanse.sdsc.edu",
    "port": 22,
    "is_community_account": True,
    "community_login": {"user": "cybergis", "use_local_key": True},
    "root_path": "/expanse/cybergis",
    "job_pool_capacity": 7,
    "init_sbatch_script": ["module load singularitypro slurm", "# for MPI", "export X=$(hostname)", "ulimit -s 9"],
    "init_sbatch_options": ["#SBATCH --account=TG-EAR1", "--licenses=a:1", "#SBATCH --chdir=/", "--wrap rm"],
    "globus": {"identity": "a@b.org", "endpoint": "e-1", "root_path": "/g"},
    "mount": {"/data": "/job/data2"},
    "slurm_input_rules": {
        "num_of_node": {"max": 4, "min": 1},
        "time": {"max": 10, "unit": "Hours"},
        "memory": {"max": 50, "unit": "GB"},
        "memory_per_gpu": {"max": 5},
    },
    "slurm_global_cap": {"gpus": {"max": 2}},
    "xsede_job_log_credential": {"xsederesourcename": "x", "apikey": "SECRET"},
    "allowlist": ["Anna@Illinois.edu"],
    "denylist": ["eve@hub.org"],
    "description": "Expanse at SDSC",
    "allocation": "TG-EAR2",
    "partition": "shared",
    "new_field": 1,
    "nothing": None,
}
KEY = "AAAAC3NzaC1lZDI1NTE5AAAAIMWvCmVc9hFSfm5bSr1vJSbmiOGn4Xhr4xr6oCEDkbtc"


def plan_of(values: dict[str, Any], name: str = "x") -> ImportPlan:
    return read_hpc({name: values}, ALLOWED)[0]


def test_the_seeds_object_is_taken_whole() -> None:
    (plan,) = read_hpc(SEED, ALLOWED)
    account = Account(plan.name, **plan.fields)
    assert (account.host, account.port, account.user) == ("keeling.earth.illinois.edu", 22, "cigi-gisolve")
    assert (account.directory, account.platform, account.capacity) == ("/tmp", "slurm", 10)
    assert plan.key_path == "cigi-gisolve.key"
    assert plan.refused == ()
    assert {note.field for note in plan.notes} == {
        *("ip", "port", "is_community_account", "connector", "root_path"),
        *("community_login.user", "community_login.external_key"),
    }


def test_of_cybergis_own_file_no_field_is_dropped_silently() -> None:
    plan = plan_of(WILD)
    told = {note.field.partition(".")[0] for note in plan.notes}
    assert set(WILD) <= told
    assert plan.fields["capacity"] == 7
    assert plan.fields["modules"] == ("singularitypro", "slurm")
    assert plan.fields["options"] == ("--licenses=a:1",)
    assert (plan.fields["project"], plan.fields["queue"]) == ("TG-EAR2", "shared")
    assert plan.fields["globus"] == {"endpoint": "e-1", "root_path": "/g"}
    assert plan.fields["description"] == "Expanse at SDSC"


def test_what_would_change_how_jobs_run_and_cannot_be_had_is_refused_by_name() -> None:
    plan = plan_of(WILD)
    assert plan.refused == (
        *("init_sbatch_script", "init_sbatch_options", "slurm_input_rules.memory_per_gpu", "new_field"),
    )
    said = " ".join(note.words for note in plan.notes if note.state == "refused")
    assert "`ulimit -s 9`" in said
    assert "--chdir can't be added" in said
    assert "--wrap can't be added" in said


def test_lists_and_caps_become_rules() -> None:
    rules = plan_of(WILD).rules
    assert {"effect": "allow", "who": "anna@illinois.edu"} in rules
    assert {"effect": "deny", "who": "eve@hub.org"} in rules
    assert {"effect": "deny", "who": "*", "limits": {"nodes": 4, "time": "10h", "memory": "50GiB"}} in rules
    assert {"effect": "deny", "who": "*", "limits": {"gpus": 2}} in rules


def test_a_secret_of_theirs_is_never_repeated() -> None:
    plan = plan_of(WILD)
    assert "SECRET" not in repr(plan)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"is_community_account": False}, "a person's own account"),
        ({"connector": "TelnetConnector"}, "is not known here"),
        ({"ip": None}, "it has no ip"),
        ({"community_login": None}, "it has no community_login"),
        ({"community_login": {}}, "it has no community_login|has no user"),
        ({"port": "22"}, "port is not a whole number"),
        ({"ip": 7}, "ip is not a text"),
    ],
)
def test_what_can_be_no_account_is_refused(change: dict[str, Any], why: str) -> None:
    both = {"bad": {**SEED["keeling_community"], **change}, **SEED}
    bad, good = read_hpc(both, ALLOWED)
    assert re.search(why, bad.problem)
    assert (good.name, good.problem) == ("keeling_community", ""), "the others can be"


def test_what_only_prepares_a_shell_is_left_out_and_what_changes_containers_is_refused() -> None:
    script = [
        *(
            "CYBERGIS_COMPUTE_BASE=$(pwd)",
            "source ~/.bashrc  # adds a program to the path",
            "cd $CYBERGIS_COMPUTE_BASE",
        ),
        *('export BASE="$(pwd)"', 'export tmp_path="/tmp/cvmfs-$(openssl rand -hex 12)"', "mkdir $tmp_path"),
    ]
    options = ["#SBATCH --nodes=1", "#SBATCH --partition=shared", "#SBATCH --time=10"]
    more = {"init_sbatch_script": script, "init_sbatch_options": options, "mount": {"/projects/x": "/compute_shared"}}
    plan = plan_of({**SEED["keeling_community"], **more})
    assert plan.refused == ()
    assert {"effect": "deny", "who": "*", "limits": {"nodes": 1}} in plan.rules
    told = next(note.words for note in plan.notes if note.field == "mount")
    assert "apps that read /compute_shared" in told
    assert "sublet place add compute_shared --on ACCOUNT --path /projects/x" in told
    lines = (
        "export SINGULARITY_BINDPATH=/projects",
        "APPTAINERENV_X=1",
        "rm -rf /tmp/x",
        "cd /tmp; rm x",
        "mkdir a b",
        "X=1; rm x",
    )
    for line in lines:
        again = plan_of({**SEED["keeling_community"], "init_sbatch_script": [line]})
        assert again.refused == ("init_sbatch_script",), line


@pytest.mark.parametrize("document", [None, [], {}, "x", {"a": 1}])
def test_what_is_no_such_document_is_refused(document: object) -> None:
    with pytest.raises(BadAccount):
        read_hpc(document, ALLOWED)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Up"},
        {"name": "../x"},
        {"host": "-oProxyCommand=x"},
        {"host": "a b"},
        {"user": "-l"},
        {"user": "a\nb"},
        {"port": 0},
        {"connector": "x"},
        {"capacity": 0},
        {"directory": "a\nb"},
        {"host_keys": ("ssh-rsa x",)},
        {"certificate": "a\nb"},
    ],
)
def test_an_account_that_ssh_would_misread_is_refused(change: dict[str, Any]) -> None:
    good: dict[str, Any] = {"name": "x", "host": "h.example.org", "user": "u"}
    assert Account(**good)
    with pytest.raises(BadAccount):
        Account(**{**good, **change})


def test_a_host_key_is_found_in_any_line_that_has_one() -> None:
    for line in (f"ssh-ed25519 {KEY}", f"h,192.0.2.1 ssh-ed25519 {KEY} me@x", f"|1|a=|b= ssh-ed25519 {KEY}"):
        assert host_key(line) == f"ssh-ed25519 {KEY}"
        assert fingerprint(line).startswith("SHA256:")
    for line in ("", f"ssh-rsa {KEY}", "ssh-ed25519 x", f"# ssh-ed25519 {KEY}"):
        assert host_key(line) == ""


@pytest.mark.parametrize(
    ("line", "host", "port", "known"),
    [
        ("h.example.org", "h.example.org", 22, True),
        ("H.example.org,192.0.2.1", "192.0.2.1", 22, True),
        ("*.example.org", "h.example.org", 22, True),
        ("!h.example.org,*.example.org", "h.example.org", 22, False),
        ("!h.example.org,*.example.org", "H.Example.org", 22, False),
        ("!H.Example.org,*.example.org", "h.example.org", 22, False),
        ("![h.example.org]:2222,*", "H.example.org", 2222, False),
        ("[h.example.org]:2222", "h.example.org", 2222, True),
        ("h.example.org", "h.example.org", 2222, False),
        ("other.example.org", "h.example.org", 22, False),
        ("@revoked h.example.org", "h.example.org", 22, False),
        ("", "h.example.org", 22, True),
        ("|1|c2FsdA==|kTJ1Aki5ZxiLjwyNqLD6xkB3T9Q=", "h.example.org", 22, False),
    ],
)
def test_a_line_of_known_hosts_counts_for_its_hosts_alone(line: str, host: str, port: int, known: bool) -> None:
    assert bool(read_host_keys(f"{line} ssh-ed25519 {KEY}\n", host, port)) == known


def test_a_hashed_line_counts_for_its_host(tmp_path: Path) -> None:
    file = tmp_path / "known_hosts"
    file.write_text(f"h.example.org ssh-ed25519 {KEY}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", file], check=True, capture_output=True)
    assert "h.example.org" not in file.read_text()
    assert read_host_keys(file.read_text(), "h.example.org")
    assert read_host_keys(file.read_text(), "H.Example.org")
    assert not read_host_keys(file.read_text(), "i.example.org")


def test_a_host_key_that_is_revoked_in_the_same_file_is_not_known() -> None:
    line = f"h.example.org ssh-ed25519 {KEY}"
    assert read_host_keys(f"@revoked * ssh-ed25519 {KEY}\n{line}\n", "h.example.org") == ()
    assert read_host_keys(f"{line}\n@revoked\tH.example.org ssh-ed25519 {KEY}\n", "h.example.org") == ()
    assert read_host_keys(f"@revoked other.example.org ssh-ed25519 {KEY}\n{line}\n", "h.example.org")
