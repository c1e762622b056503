"""Waiting until a site, or one machine of it, does what it is there for."""

import socket
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from testbed.machines import clean_environment, entering, first_process
from testbed.plan import Plan, SiteError

PATIENCE = 60  # seconds
LISTENING = "0A"  # as /proc/net/tcp says it
SSHD, SLURMCTLD = 22, 6817


def wait_for_site(plan: Plan) -> None:
    """Return when people can log in and Slurm says that every node is idle."""
    for machine in plan.machines:
        wait_for_machine(plan, machine)
    wait(plan, "not every node is idle", lambda: idle_nodes(plan) == set(plan.computes))


def wait_for_machine(plan: Plan, machine: str) -> None:
    """Return when a machine can be entered and, if it serves others, its service listens."""
    wait(plan, f"{machine} is not up", lambda: serves(plan, machine))


def wait(plan: Plan, otherwise: str, happened: Callable[[], bool]) -> None:
    """Return when something has happened; say what the machines said when it takes too long or one of them gave up."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        if exited := sorted((plan.root / "log").glob("*.exited")):
            raise SiteError(f"{exited[0].stem} gave up:\n{last_words(plan)}")
        if time.monotonic() > deadline:
            raise SiteError(f"{plan.name}: {otherwise} after {PATIENCE} s:\n{last_words(plan)}")
        time.sleep(0.02)


def serves(plan: Plan, machine: str) -> bool:
    """Whether a machine is on and listens, as far as others wait for it."""
    pid = first_process(plan, machine)
    doors = {"ctl": {("0.0.0.0", SLURMCTLD)}, "login": {("0.0.0.0", SSHD), (f"{plan.outer}.2", SSHD)}}.get(machine)
    return pid is not None and (doors is None or not doors.isdisjoint(listeners(pid)))


def listeners(pid: int) -> set[tuple[str, int]]:
    """The addresses and ports on which anybody listens in a process's network."""
    try:
        rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    except OSError:  # the process has just ended
        return set()
    doors = [row[1].split(":") for row in rows if row[3] == LISTENING]
    return {(socket.inet_ntoa(struct.pack("=I", int(address, 16))), int(port, 16)) for address, port in doors}


def idle_nodes(plan: Plan) -> set[str]:
    """The nodes that Slurm could use at once."""
    asked = entering(plan, "ctl", ["sinfo", "-h", "-N", "-o", "%N %t"])
    rows = subprocess.run(asked, capture_output=True, text=True, env=clean_environment()).stdout.splitlines()
    return {node for node, state in (row.split() for row in rows) if state == "idle"}


def last_words(plan: Plan) -> str:
    """The ends of all logs of a site."""
    ends = {log: log.read_text(errors="replace").splitlines()[-3:] for log in (plan.root / "log").glob("*.log")}
    return "\n".join(f"{log.name}: {line}" for log, lines in sorted(ends.items()) for line in lines)
