"""Machines: each has its own namespaces and its own root file system, and shares /home and /scratch."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

from testbed import checkout
from testbed.network import NAMESPACES, inside, processes
from testbed.plan import Plan, SiteError

HERE = Path(__file__).resolve().parent
UNSHARE = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--propagation", "private"]


def start_machine(plan: Plan, machine: str) -> None:
    """Switch a machine on; its disk is as it was, its /tmp and /run are empty."""
    own = plan.root / "machines" / machine
    for name in ("root", "files", "work"):
        (own / name).mkdir(parents=True, exist_ok=True)
    (own / "pid").unlink(missing_ok=True)
    shares = ["ap-layer", "ap-home", "ap-scratch"] if machine == "ap" else ["layer", "home", "scratch"]
    places = [str(plan.root / share) for share in shares]
    words = [machine, str(plan.root), plan.base, *places, cgroup(plan) if plan.cgroups else ""]
    if machine == "ap":
        words += [str(word) for pair in checkout.mounts(plan.base).items() for word in pair]
        words += [str(plan.root / "home"), "/site/home"] if plan.ap_mounts else []
    with (plan.root / "log" / f"{machine}.log").open("ab") as log:
        argv = [*inside(plan, machine), *UNSHARE, "bash", str(HERE / "machine.sh"), *words]
        background(argv, log.fileno())
        if machine == "login" and plan.latency:
            outer = [f"{plan.outer}.2", *([f"{plan.wide}.1"] if plan.ap else [])]
            delay = [sys.executable, str(HERE / "delay.py"), str(plan.latency / 2000), plan.address("login"), *outer]
            background([*inside(plan, machine), *delay], log.fileno())


def background(argv: list[str], log: int) -> None:
    """Start a process that outlives this command; its namespace tells whose it is."""
    subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/")


def first_process(plan: Plan, machine: str) -> int | None:
    """The number of a machine's first process once it can be entered; None when the machine is off."""
    try:
        pid = int((plan.root / "machines" / machine / "pid").read_text())
        same = os.path.samefile(f"/proc/{pid}/ns/net", NAMESPACES / plan.network(machine))
    except (FileNotFoundError, ValueError):
        return None
    return pid if same else None


def entering(plan: Plan, machine: str, argv: list[str], user: str = "", how: str = "-c") -> list[str]:
    """The command that runs another one on a machine, as root or with a person's login shell; who sits at a terminal
    keeps it with `--session-command`.
    """
    if machine not in plan.machines:
        raise SiteError(f"{plan.name} has no machine {machine}; it has {', '.join(plan.machines)}")
    pid = first_process(plan, machine)
    if pid is None:
        raise SiteError(f"{machine} is off; `testbed/site boot {plan.name} {machine}` switches it on")
    command = ["/usr/sbin/runuser", "-l", user, how, shlex.join(argv)] if user else argv
    return ["nsenter", "-t", str(pid), "-m", "-u", "-i", "-n", "-p", "-r", "-w", *command]


def clean_environment() -> dict[str, str]:
    """What a command on a machine sees of this one: the terminal, nothing else."""
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return {"PATH": path, "HOME": "/root", "LANG": "C.UTF-8", "TERM": os.environ.get("TERM", "dumb")}


def stop_machine(plan: Plan, machine: str) -> None:
    """Take a machine's power away: all its processes are gone at once."""
    deadline = time.monotonic() + 10
    while pids := processes(plan, machine):
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if time.monotonic() > deadline:
            raise SiteError(f"{machine} of {plan.name} does not stop: {pids}")
        time.sleep(0.02)
    (plan.root / "machines" / machine / "pid").unlink(missing_ok=True)


def cgroup(plan: Plan) -> str:
    """The directory of the site in every controller of cgroup v1."""
    return f"sublet-{plan.name}"
