"""Start a cloud, wait until it can have virtual machines, and leave nothing of it behind."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from testbed.machines import UNSHARE
from testbed.network import NAMESPACES, ip, new_namespace, run, wire
from testbed.openstack.build import HERE, CloudParts, have_cloud_parts
from testbed.plan import SiteError

PATIENCE = 900  # seconds until it can have virtual machines, on a machine that is busy
PASSWORD = "secret"
FIRST = 3000  # characters of a log that are shown of what went wrong


@dataclass(frozen=True)
class Cloud:
    """One that is up."""

    name: str
    address: str
    log: Path

    @property
    def auth_url(self) -> str:
        """Keystone's address."""
        return f"https://{self.address}:5000/v3"

    @property
    def authority(self) -> Path:
        """The certificate that its services are known by."""
        return self.log / "ca.pem"

    def write_config(self, target: Path, person: str, project: str = "sky", **more: Any) -> Path:
        """A person's clouds.yaml, as their cloud gives it to them."""
        auth = {
            "auth_url": self.auth_url,
            "username": person,
            "password": PASSWORD,
            "project_name": project,
            "user_domain_name": "Default",
            "project_domain_name": "Default",
        }
        entry = {"auth": {**auth, **more}, "region_name": "here", "cacert": str(self.authority)}
        target.write_text(yaml.safe_dump({"clouds": {"here": entry}}))
        target.chmod(0o600)
        return target


@contextmanager
def start_cloud() -> Iterator[Cloud]:
    """A cloud of one host, whose services are reached from this machine and from nowhere else."""
    parts = have_cloud_parts()
    with tempfile.TemporaryDirectory(prefix="sublet-openstack-", dir="/var/tmp") as directory:
        name = f"sublet-os-{os.getpid()}"
        try:
            yield _start(parts, name, Path(directory))
        finally:
            _stop(name)


def _start(parts: CloudParts, name: str, directory: Path) -> Cloud:
    log, root = directory / "log", directory / "root"
    log.mkdir()
    root.mkdir()
    address = _make_network(name)
    words = ["bash", str(HERE / "machine.sh"), str(root), str(parts.box), str(parts.guest), str(log), address]
    argv = ["nsenter", f"--net={NAMESPACES / name}", *UNSHARE, *words]
    with (log / "machine.log").open("wb") as output:
        machine = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/")
    deadline = time.monotonic() + PATIENCE
    while not (log / "ready").exists():
        if machine.poll() is not None or time.monotonic() > deadline:
            raise SiteError(f"the cloud is not ready:\n{(log / 'machine.log').read_text()[-FIRST:]}")
        time.sleep(0.1)
    return Cloud(name, address, log)


def _make_network(name: str) -> str:
    """A namespace with a wire to this machine, on which its guests are too; the address of its far end."""
    listed = subprocess.run(["ip", "-o", "addr"], capture_output=True, text=True).stdout
    index = next(number for number in range(1, 251) if f"10.205.{number}." not in listed)
    new_namespace(name)
    near = f"sublet-os{index}"
    wire(None, near, name, "eth0")
    ip(f"addr add 10.205.{index}.1/24 dev {near}")
    ip("link add guests type bridge", "link set eth0 master guests", "link set guests up", within=name)
    ip(f"addr add 10.205.{index}.2/24 dev guests", within=name)
    return f"10.205.{index}.2"


def _stop(name: str) -> None:
    """Take the machine's power away, and remove its wire and its namespace."""
    deadline = time.monotonic() + 30
    while pids := _list_processes(name):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise SiteError(f"these processes of {name} do not end: {pids}")
        time.sleep(0.05)
    if (NAMESPACES / name).exists():
        run(["ip", "netns", "del", name])


def _list_processes(name: str) -> list[int]:
    if not (NAMESPACES / name).exists():
        return []
    done = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True)
    return sorted(int(word) for word in done.stdout.split())
