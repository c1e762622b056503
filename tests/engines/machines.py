"""Machines out of namespaces over boxes: each with its own files, processes and network; nothing is left of them."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).with_name("machine.sh")
UNSHARE = ("unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--propagation", "private")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PERSON = "researcher"
numbers = itertools.count()


@dataclass(frozen=True)
class EngineMachine:
    """One that runs."""

    name: str
    network: str  # the name of its network namespace
    address: str  # as this machine reaches it
    key: Path  # lets the person in over SSH
    pid: int
    person: str = PERSON

    def run(self, *argv: str, stdin: str = "", check: bool = True) -> str:
        """Run a command there as root; what it printed."""
        words = ["nsenter", "-t", str(self.pid), "-m", "-u", "-i", "-n", "-p", "-r", "-w", *argv]
        environment = {"PATH": PATH, "HOME": "/root", "LANG": "C.UTF-8"}
        done = subprocess.run(words, input=stdin, capture_output=True, text=True, env=environment, timeout=300)
        if check and done.returncode:
            raise AssertionError(f"{argv} failed on {self.name}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def run_script(self, script: str) -> str:
        """Run a script there as root."""
        return self.run("bash", "-eu", "-c", script)

    def run_as_person(self, line: str, *, check: bool = True) -> str:
        """Run a line in the person's login shell."""
        return self.run("runuser", "-l", PERSON, "-c", line, check=check)

    @property
    def ssh(self) -> dict[str, str]:
        """Options of ssh for a host that only its tests know."""
        return {"UserKnownHostsFile": str(self.key.with_name("known_hosts"))}


@contextmanager
def start_machine(
    name: str, box: Path, place: Path, others: Sequence[str] = (), mounts: Mapping[Path, str] | None = None
) -> Iterator[EngineMachine]:
    """A machine over a box, with an SSH server and one person; `others` are more names for itself.

    `mounts` are directories of this machine, and where it sees them.
    """
    count = next(numbers)
    network, number = f"engine-{os.getpid()}-{name}-{count}", (os.getpid() * 4 + count) % 16000
    link, subnet = f"en{number}{name[:6]}", f"10.{204 + number // 64 // 64}.{number // 64 % 64 + 64}.{number % 64 * 4}"
    stem, _, last = subnet.rpartition(".")
    here, there = f"{stem}.{int(last) + 1}", f"{stem}.{int(last) + 2}"
    (place / "files").mkdir(parents=True)
    _run("ip", "netns", "add", network)
    try:
        _run("ip", "-n", network, "link", "set", "lo", "up")
        _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", network)
        _run("ip", "addr", "add", f"{here}/30", "dev", link)
        _run("ip", "link", "set", link, "up")
        _run("ip", "-n", network, "addr", "add", f"{there}/30", "dev", "eth0")
        _run("ip", "-n", network, "link", "set", "eth0", "up")
        hosts = f"{there} {' '.join([name, *others])}\\n"
        words = [
            "nsenter",
            f"--net=/run/netns/{network}",
            *UNSHARE,
            "bash",
            str(SCRIPT),
            name,
            str(place),
            str(box),
            hosts,
            *(str(word) for pair in (mounts or {}).items() for word in pair),
        ]
        with (place / "log").open("wb") as log:
            subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        key = place / "key"
        _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key))
        machine = EngineMachine(name, network, there, key, _wait_for_pid(place))
        _let_person_in(machine)
        yield machine
    finally:
        _stop(network)
        subprocess.run(["ip", "link", "del", link], capture_output=True)
        subprocess.run(["ip", "netns", "del", network], capture_output=True)


@contextmanager
def wire(near: EngineMachine, far: EngineMachine) -> Iterator[tuple[str, str]]:
    """A wire between two machines; their addresses at its ends."""
    _, second, third, last = map(int, near.address.split("."))
    here, there = (f"10.{second - 8}.{third}.{last // 4 * 4 + number}" for number in (1, 2))
    name = f"to-{far.name}"
    _run("ip", "-n", near.network, "link", "add", name, "type", "veth", "peer", "name", "wan0", "netns", far.network)
    for machine, link, address in ((near, name, here), (far, "wan0", there)):
        _run("ip", "-n", machine.network, "addr", "add", f"{address}/30", "dev", link)
        _run("ip", "-n", machine.network, "link", "set", link, "up")
    yield here, there


def _wait_for_pid(place: Path) -> int:
    deadline = time.monotonic() + 30
    while not (text := (place / "pid").read_text().strip() if (place / "pid").exists() else ""):
        assert time.monotonic() < deadline, f"the machine does not start: {(place / 'log').read_text()}"
        time.sleep(0.05)
    return int(text)


def _let_person_in(machine: EngineMachine) -> None:
    """Start its SSH server, and make the person and their key known to one another."""
    public = machine.key.with_suffix(".pub").read_text()
    machine.run_script(
        f"useradd -m -p '*' -s /bin/bash {PERSON}; mkdir -m 700 /home/{PERSON}/.ssh; ssh-keygen -qA; "
        f"echo '{public.strip()}' >/home/{PERSON}/.ssh/authorized_keys; chown -R {PERSON}: /home/{PERSON}; "
        "/usr/sbin/sshd -o PasswordAuthentication=no -o MaxStartups=100 -o UsePAM=no"
    )
    known = machine.run("cat", "/etc/ssh/ssh_host_ed25519_key.pub")
    machine.key.with_name("known_hosts").write_text(f"{machine.address} {known}")


def _stop(network: str) -> None:
    deadline = time.monotonic() + 20
    while pids := _run("ip", "netns", "pids", network).split():
        for pid in pids:
            try:
                os.kill(int(pid), signal.SIGKILL)
            except ProcessLookupError:
                pass
        if time.monotonic() > deadline:
            raise AssertionError(f"{network} does not stop: {pids}")
        time.sleep(0.05)


def _run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{argv}: {done.stderr.strip()}")
    return done.stdout
