"""Start a site, stop it so that nothing is left, and sweep those whose owner has died."""

import dataclasses
import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from testbed import checkout, network
from testbed.layer import write_layers
from testbed.machines import UNSHARE, cgroup, clean_environment, entering, start_machine, stop_machine
from testbed.plan import NAME, ROOT, Plan, SiteError, Skip, names, started
from testbed.slurm import slurm_version
from testbed.waiting import wait_for_site

CONTROLLERS = ("memory", "freezer", "cpuset", "cpuacct", "devices")


def up(wanted: Plan) -> Plan:
    """Start a site and wait until all its nodes are idle; if that fails, leave nothing."""
    check_machine(wanted)
    plan = claim(dataclasses.replace(wanted, version=slurm_version(wanted.base)))
    try:
        write_layers(plan)
        if plan.cgroups:
            make_cgroups(plan)
        network.make_network(plan)
        for machine in plan.machines:
            start_machine(plan, machine)
        wait_for_site(plan)
        if plan.ap:
            checkout.compile_once(plan.base, lambda words: run_on(plan, "ap", words))
        plan = dataclasses.replace(plan, owner=wanted.owner)
        plan.save()
    except BaseException:
        down(plan)
        raise
    return plan


def run_on(plan: Plan, machine: str, words: list[str]) -> None:
    """Run a command on a machine, as root, whatever comes of it."""
    subprocess.run(entering(plan, machine, words), capture_output=True, env=clean_environment())


def check_machine(plan: Plan) -> None:
    """Raise Skip, with the reason, where this machine cannot have such a site."""
    if not NAME.fullmatch(plan.name):
        raise SiteError(f"{plan.name!r} is not a site's name: write small letters, digits and dashes")
    if os.geteuid() != 0:
        raise Skip("a site in namespaces needs root")
    programs = ["ip", "nsenter", "unshare", "ssh-keygen", *(["iptables"] if plan.nat else [])]
    if absent := [program for program in programs if not shutil.which(program)]:
        raise Skip(f"not on this machine: {', '.join(absent)} (scripts/system-packages installs what a site needs)")
    needed = ["slurmctld", "slurmd", "munged", "sshd", *(["slurmdbd", "mariadbd"] if plan.accounts else [])]
    if absent := [program for program in needed if not (Path(plan.base) / "usr/sbin" / program).exists()]:
        raise Skip(f"not in {plan.base}: {', '.join(absent)} (scripts/system-packages installs what a site needs)")
    if plan.cgroups and not Path("/sys/fs/cgroup/memory").is_dir():
        raise Skip("limits by cgroups need version 1 of them, and this machine has none")
    if subprocess.run([*UNSHARE, "true"], capture_output=True).returncode:
        raise Skip("the kernel refuses namespaces")


@contextmanager
def locked() -> Iterator[None]:
    """One at a time: whoever claims a name and an index, or sweeps."""
    ROOT.mkdir(parents=True, exist_ok=True)
    with (ROOT / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def claim(plan: Plan) -> Plan:
    """Take the name and the lowest free index, and mount the site's own file systems."""
    starter = (os.getpid(), started(os.getpid()) or "")  # until it is up, the site ends with this command
    with locked():
        if plan.name in names():
            raise SiteError(f"{plan.name} is up already; `testbed/site down {plan.name}` stops it")
        used = {other.index for other in known()}
        index = next((i for i in range(1, 251) if i not in used and not network.is_used(i)), None)
        if index is None:
            raise SiteError("250 sites are up: stop one")
        plan = dataclasses.replace(plan, index=index, owner=starter)
        mount_tmpfs(plan.root, "8g", "755")
        plan.save()
    for name in ("log", "machines", *(["ap-home", "ap-scratch"] if plan.ap else [])):
        (plan.root / name).mkdir()
    mount_tmpfs(plan.root / "home", plan.home_size, "755")
    mount_tmpfs(plan.root / "scratch", "8g", "1777")
    return plan


def known() -> list[Plan]:
    """The plans of all sites that have one."""
    plans = []
    for name in names():
        with suppress(SiteError):
            plans.append(Plan.load(name))
    return plans


def mount_tmpfs(path: Path, size: str, mode: str) -> None:
    """Mount a file system of its own, of a size at most."""
    path.mkdir()
    network.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode={mode}", "sublet-testbed", str(path)])


def make_cgroups(plan: Plan) -> None:
    """A directory of its own for every machine in every controller, so that sites do not meet there."""
    for controller in CONTROLLERS:
        for machine in plan.machines:
            (Path("/sys/fs/cgroup") / controller / cgroup(plan) / machine).mkdir(parents=True)


def remove_cgroups(plan: Plan) -> None:
    """Remove the site's cgroups, which the kernel frees a moment after their last process."""
    for controller in CONTROLLERS:
        top = Path("/sys/fs/cgroup") / controller / cgroup(plan)
        deadline = time.monotonic() + 5
        while top.exists():
            for path in [*sorted((p for p in top.rglob("*") if p.is_dir()), reverse=True), top]:
                with suppress(OSError):
                    path.rmdir()
            if time.monotonic() > deadline:
                raise SiteError(f"{top} does not go away")


def down(plan: Plan) -> None:
    """Stop a site, or the half of it that is there; its files, processes, wires and mounts are gone afterwards."""
    for machine in ["switch", *plan.machines]:
        stop_machine(plan, machine)
    network.remove_network(plan)
    if plan.cgroups:
        remove_cgroups(plan)
    unmount(plan.name)


def stop(name: str) -> None:
    """Stop a site by its name, also one that was never finished."""
    try:
        plan = Plan.load(name)
    except SiteError:
        unmount(name)  # its starter died before it had written the plan, so there is nothing else
    else:
        down(plan)


def unmount(name: str) -> None:
    """Unmount all of a site's file systems and remove the directory that they were on."""
    root = ROOT / name
    mounted = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for path in sorted((p for p in mounted if Path(p).is_relative_to(root)), reverse=True):
        deadline = time.monotonic() + 5
        while (done := subprocess.run(["umount", path], capture_output=True, text=True)).returncode:
            if time.monotonic() > deadline:
                raise SiteError(f"{path} cannot be unmounted: {done.stderr.strip()}")
            time.sleep(0.05)
    with suppress(FileNotFoundError):
        root.rmdir()


def sweep() -> list[str]:
    """Stop all sites whose owner has died, and tell which they were."""
    swept = []
    with locked():
        for name in names():
            with suppress(SiteError):
                owner = Plan.load(name).owner
                if owner is None or started(owner[0]) == owner[1]:
                    continue
            stop(name)
            swept.append(name)
    return swept
