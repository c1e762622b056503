"""`doctor`: checks this machine and the service, and says how to fix problems."""

from __future__ import annotations

import os
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec

from sublet.annexes.calls.access_point import access_point
from sublet.cli.command import command
from sublet.cli.doctor.findings import DoctorFinding
from sublet.cli.doctor.home import place
from sublet.cli.doctor.service import service
from sublet.cli.doctor.settings import database, network_policies, settings
from sublet.cli.output import Output, table
from sublet.client.address import find_address
from sublet.client.link import Link
from sublet.kernel.container_network import USUAL, choose_networks, look_at_machine
from sublet.kernel.errors import BadMasterKey, SubletError, UnsafeHome
from sublet.kernel.home import Home, sublet_home
from sublet.kernel.master_key import find, read

CONTAINERS = ("podman", "docker", "apptainer", "singularity", "ch-run")
NOTEBOOKS = ("papermill", "nbconvert", "ipykernel", "jupyterlab")
HTCONDOR = ("condor_submit", "condor_q", "condor_status", "condor_history")


@command("doctor", "sublet doctor")
def doctor(out: Output) -> int:
    """Check this machine, your SUBLET_HOME and the service, and say how to fix problems."""
    findings = list(_look_at_all())
    out.show(
        findings,
        lambda: table(("", "WHAT", "FOUND", "WHAT TO DO"), [(f.state, f.what, f.detail, f.todo) for f in findings]),
        lambda: (f"{f.state} {f.what}: {f.detail}" for f in findings if f.state != "ok"),
    )
    return 1 if any(finding.state == "bad" for finding in findings) else 0


def _look_at_all() -> Iterator[DoctorFinding]:
    """Yield the findings of all checks; in an unsafe home, nothing is read."""
    try:
        home = sublet_home()
    except UnsafeHome as error:
        yield from python()
        yield DoctorFinding("bad", "SUBLET_HOME", error.message, error.advice)
        yield from tools()
    else:
        for check in CHECKS:
            yield from check(home)


def python(_: Home | None = None) -> Iterator[DoctorFinding]:
    """Check the version of Python."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield DoctorFinding("ok" if sys.version_info >= (3, 11) else "bad", "Python", f"{version}, {sys.executable}")


def master_key(home: Home) -> Iterator[DoctorFinding]:
    """Check the master key, if one is set."""
    try:
        with open(home.settings, "rb") as file:
            setting = str(tomllib.load(file).get("master_key", ""))
    except (OSError, ValueError):
        setting = ""
    location = find(setting)
    if not location:
        return
    try:
        keys = read(location, home.root)
    except BadMasterKey as error:
        yield DoctorFinding("bad", "master key", error.message, error.advice)
    else:
        yield DoctorFinding("ok", "master key", f"{location}, {keys[0].id}")


def tools(home: Home | None = None) -> Iterator[DoctorFinding]:
    """Check the tools for containers and notebooks."""
    containers = [name for name in CONTAINERS if shutil.which(name)]
    todo = "" if containers else "To run images, install podman or apptainer."
    yield DoctorFinding("ok" if containers else "warn", "containers", ", ".join(containers) or "no tool for them", todo)
    if "podman" in containers:
        yield from _networks(network_policies(home) if home else {"": USUAL})
    missing = [name for name in NOTEBOOKS if find_spec(name) is None]
    if missing:
        yield DoctorFinding("warn", "notebooks", f"without {', '.join(missing)}", "pip install 'sublet[notebook]'")
    else:
        yield DoctorFinding("ok", "notebooks", ", ".join(NOTEBOOKS))


def _networks(policies: Mapping[str, str]) -> Iterator[DoctorFinding]:
    """Check which network Podman's containers get, by each platform's policy, which may be to have none."""
    means = look_at_machine()
    for name, policy in policies.items():
        network = choose_networks("podman", policy, False, means)[0]
        what = f"their network on {name}" if len(policies) > 1 else "their network"
        yield DoctorFinding("warn" if network.remedy else "ok", what, network.words, network.remedy)


def htcondor(home: Home) -> Iterator[DoctorFinding]:
    """Check what annexes need: HTCondor, and a working access point if there is one."""
    fetched = os.path.join(home.root, "htcondor", "sbin")
    places = (os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin", "/opt/condor/sbin", fetched)
    master = shutil.which("condor_master", path=os.pathsep.join(places))
    if master is None:
        yield DoctorFinding("warn", "HTCondor", "not here", "For annexes: sublet annex setup")
        return
    root = os.path.dirname(os.path.dirname(master))
    beside = os.pathsep.join(os.path.join(root, place) for place in ("bin", "sbin"))
    missing = [name for name in HTCONDOR if not shutil.which(name, path=beside)]
    if missing:
        todo = "Install all of its package, or for annexes: sublet annex setup --fetch"
        yield DoctorFinding("warn", "HTCondor", f"{root}, without {', '.join(missing)}", todo)
        return
    yield DoctorFinding("ok", "HTCondor", root)
    if not shutil.which("openssl"):
        yield DoctorFinding(
            "warn", "openssl", "not here", "Pilots ask over HTTPS: install openssl, which makes the key for it."
        )
    try:
        view = Link(replace(find_address(), home=None)).do(access_point())
    except SubletError:
        return  # no service is running, or it is a gateway
    state = {"failed": "bad", "absent": "warn"}.get(view.stage, "ok")
    yield DoctorFinding(state, "access point", view.problem or f"{view.stage} {view.collector}".strip(), view.hint)


CHECKS: tuple[Callable[[Home], Iterator[DoctorFinding]], ...] = (
    *(python, place, settings, master_key, database, service, tools, htcondor),
)
