"""Real Slurm sites for tests: `site` is shared by the tests of a worker, `fresh_site` is for those that break it."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from testbed import people
from testbed.machines import clean_environment, entering
from testbed.plan import Plan, SiteError, started

from tests.nursery import typed
from tests.pace import pause

COMMAND = [sys.executable, str(Path(__file__).resolve().parent.parent / "testbed" / "site")]
CANNOT = 77
MOUNTED = "sublet-tests"
HASTY = ("--slurm", "SlurmdTimeout=2", "--slurm", "MessageTimeout=2")  # a dead node is noticed in 10 s, not 35
numbers = itertools.count(1)


@dataclass(frozen=True)
class Site:
    """A site that is up."""

    name: str
    facts: dict[str, Any]  # what `testbed/site status --json` says

    @cached_property
    def plan(self) -> Plan:
        """What it was started as."""
        return Plan.load(self.name)

    @property
    def host(self) -> str:
        """The address of the login host, whose sshd is on port 22."""
        return str(self.facts["host"])

    @property
    def key(self) -> Path:
        """The private key of keyholder and service."""
        return Path(self.facts["key_file"])

    @property
    def ssh_config(self) -> Path:
        """An ssh configuration that knows the site by its name."""
        return Path(self.facts["ssh_config"])

    def code(self) -> str:
        """The code of the second factor, now."""
        return people.code(self.facts["code_secret"])

    def fresh_code(self) -> str:
        """The code of the second factor at the start of its half minute, so that it lasts for the test's next steps."""
        while time.time() % people.PERIOD > people.PERIOD - 5:
            time.sleep(0.1)
        return self.code()

    def entering(self, where: str, *argv: str, how: str = "-c") -> list[str]:
        """What `testbed/site exec` becomes: the words that run a command on a machine."""
        user, _, machine = where.rpartition("@")
        return entering(self.plan, machine, list(argv), user, how)

    def does(self, where: str, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a command on a machine."""
        try:
            words = self.entering(where, *argv)
        except SiteError as error:  # the machine is off
            return subprocess.CompletedProcess(argv, 1, "", f"error: {error}\n")
        return run(words, clean_environment())

    def on(self, where: str, *argv: str, check: bool = True) -> str:
        """What a command prints on a machine; where is `ctl` (as root) or `researcher@login`."""
        done = self.does(where, *argv)
        if check and done.returncode:
            raise AssertionError(f"{where}: {' '.join(argv)}: {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def crash(self, machine: str) -> None:
        """Take a machine's power away."""
        succeed(control("crash", self.name, machine))

    def boot(self, machine: str) -> None:
        """Switch a machine on again."""
        succeed(control("boot", self.name, machine))

    def pull_cable(self, machine: str) -> None:
        """Silence a machine: nothing comes out of it, not even an end of its connections."""
        succeed(control("cable", self.name, machine, "down"))

    def put_cable(self, machine: str) -> None:
        """Join a silenced machine again."""
        succeed(control("cable", self.name, machine, "up"))
        if machine == "login":  # for a moment the kernel remembers that nobody answered there
            self.wait(self.answers)

    def answers(self) -> bool:
        """Whether the login host can be reached."""
        with suppress(OSError), socket.create_connection((self.host, 22), 1):
            return True
        return False

    def ssh(
        self, user: str, *argv: str, password: str = "", code: str = "", options: tuple[str, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Log in as a person would, answering each prompt once, and run a command."""
        words = ["ssh", "-F", str(self.ssh_config), "-o", "NumberOfPasswordPrompts=1", *options]
        with askpass(password, code) as environment:
            return run([*words, f"{user}@{self.name}", *argv], environment)

    def wait(self, happened: Callable[[], bool], seconds: float = 120) -> None:
        """Return when something has happened on the site, asked again and again."""
        first = began = time.monotonic()
        while not happened():
            now = time.monotonic()
            assert now < first + seconds, f"it did not happen within {seconds} s"
            time.sleep(pause(now - began, 0.25, now - first))
            began = time.monotonic()


@contextmanager
def askpass(password: str, code: str) -> Iterator[dict[str, str]]:
    """An environment in which ssh gets its answers from a program instead of a terminal."""
    with tempfile.TemporaryDirectory(prefix="sublet-askpass-") as directory:
        program = Path(directory) / "askpass"
        program.write_text(f"#!/bin/sh\ncase $1 in *assword*) echo '{password}' ;; *) echo '{code}' ;; esac\n")
        program.chmod(0o700)
        yield {**os.environ, "SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force", "LC_ALL": "C"}


def run(argv: list[str], environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end with its output kept."""
    return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, env=environment)


def control(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `testbed/site`."""
    return typed(words, os.environ, program="testbed", timeout=120)


def succeed(done: subprocess.CompletedProcess[str]) -> str:
    """What a command said that had to succeed."""
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def running(*options: str) -> Iterator[Site]:
    """A site that lasts as long as the block; should this process be killed, the next one sweeps it."""
    name = f"t{os.getpid()}-{next(numbers)}"
    done = control("up", name, "--owner", str(os.getpid()), *options)
    if done.returncode == CANNOT:
        pytest.skip(done.stderr.strip().removeprefix("SKIP: "))
    try:
        succeed(done)
        yield Site(name, json.loads(succeed(control("status", name, "--json"))))
    finally:
        succeed(control("down", name))


def look_often(systems: Path) -> None:
    """Have a person's systems asked more often than a guest would, as only a test may."""
    for file in systems.glob("*.yaml"):
        if "poll:" not in (said := file.read_text()):
            file.write_text(f"{said}poll: 2s\nlook: 1s\n")


@contextmanager
def mounted(place: Path, size: str) -> Iterator[bool]:
    """A small file system while the block runs, if there can be one; should this process be killed, it is swept."""
    pid = os.getpid()
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", f"{MOUNTED}.{pid}.{started(pid)}", str(place)]
    made = os.geteuid() == 0 and run(words).returncode == 0
    try:
        yield made
    finally:
        if made:
            succeed(run(["umount", "-l", str(place)]))


@contextmanager
def limited(folder: Path, quota: int) -> Iterator[Path | None]:
    """A directory below a folder that has a quota of the file system (btrfs) while the block runs; None: there is none.

    Should this process be killed, it is swept.
    """
    disk, place = folder / f"{MOUNTED}.{os.getpid()}.{started(os.getpid())}", folder / "limited"
    place.mkdir()
    with disk.open("wb") as file:
        file.truncate(128 << 20)
    made = os.geteuid() == 0 and shutil.which("mkfs.btrfs") and run(["mkfs.btrfs", "-q", str(disk)]).returncode == 0
    made = made and run(["mount", "-o", "loop", str(disk), str(place)]).returncode == 0
    own = str(place / "own")
    steps = (["quota", "enable", str(place)], ["subvolume", "create", own], ["qgroup", "limit", str(quota), own])
    try:
        yield Path(own) if made and all(run(["btrfs", *step]).returncode == 0 for step in steps) else None
    finally:
        if made:
            succeed(run(["umount", "-l", str(place)]))
        disk.unlink()


def _find_mounter(source: str) -> str:
    """What was mounted, by its name: a file that is a disk has one of its own."""
    backing = Path("/sys/block", Path(source).name, "loop", "backing_file")
    return Path(backing.read_text().strip()).name if source.startswith("/dev/loop") and backing.exists() else source


def sweep_mounts() -> None:
    """Unmount what runs that were killed had mounted."""
    for line in Path("/proc/mounts").read_text().splitlines():
        source, place = line.split()[:2]
        name, _, owner = _find_mounter(source).partition(".")
        pid, _, began = owner.partition(".")
        if name == MOUNTED and started(int(pid)) != began:
            run(["umount", "-l", place])


@pytest.fixture(scope="session")
def swept() -> None:
    """What runs that were killed left behind is gone."""
    if os.geteuid() == 0:
        succeed(control("sweep"))
        sweep_mounts()


@pytest.fixture(scope="session")
def site(swept: None) -> Iterator[Site]:
    """One site for all tests of this worker that leave it as they found it."""
    with running() as one:
        yield one


@pytest.fixture
def new_site(swept: None) -> Iterator[Callable[..., Site]]:
    """Starts a site with options of `testbed/site up`, stopped at the end of the test."""
    with ExitStack() as stack:
        yield lambda *options: stack.enter_context(running(*options))


@pytest.fixture
def fresh_site(new_site: Callable[..., Site]) -> Site:
    """A site of this test alone, which may break it; Slurm soon notices that a node is dead."""
    return new_site(*HASTY)
