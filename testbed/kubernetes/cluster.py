"""Start a cluster, wait until its node is ready, and leave nothing of it behind."""

from __future__ import annotations

import json
import os
import secrets
import signal
import ssl
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import yaml

from testbed.kubernetes.build import HERE, ClusterParts, have_parts
from testbed.machines import UNSHARE, clean_environment
from testbed.network import NAMESPACES, ip, new_namespace, run, wire
from testbed.plan import SiteError, Skip

CONTROLLERS = ("memory", "freezer", "cpuset", "cpuacct", "cpu", "devices", "blkio", "pids", "systemd")
CGROUPS = Path("/sys/fs/cgroup")
PATIENCE = 180  # seconds until its node is ready
PEOPLE = {"admin": "system:masters", "system:node:node1": "system:nodes", "alice": "", "bob": "", "dora": ""}


@dataclass(frozen=True)
class Cluster:
    """One that is up."""

    name: str
    address: str
    log: Path
    tokens: Mapping[str, str]
    pid: int

    @property
    def server(self) -> str:
        """The address of its API server."""
        return f"https://{self.address}:6443"

    @property
    def authority(self) -> Path:
        """The certificate that its API server is known by."""
        return self.log / "ca.crt"

    def kubectl(self, *words: str, stdin: str = "") -> str:
        """What kubectl says to the administrator."""
        done = self._call_kubectl(words, stdin)
        if done.returncode:
            raise SiteError(f"kubectl {words[-2:]}: {done.stderr.strip()}")
        return done.stdout

    def ask_kubectl(self, *words: str) -> str:
        """What kubectl answers, also where its exit code is a part of the answer."""
        return self._call_kubectl(words).stdout.strip()

    def _call_kubectl(self, words: Sequence[str], stdin: str = "") -> subprocess.CompletedProcess[str]:
        argv = [*self._enter(), "kubectl", "--kubeconfig", "/run/kubernetes/admin.conf", *words]
        return subprocess.run(argv, input=stdin, capture_output=True, text=True, env=clean_environment())

    def _enter(self) -> tuple[str, ...]:
        """The words before a command that run it on the cluster's machine."""
        return ("nsenter", "-t", str(self.pid), "-m", "-n", "-p", "-r", "-w")

    def import_image(self, archive: Path) -> None:
        """Have its node know the images of an archive, as if they had been pulled."""
        self._run_with(archive, "ctr", "-n", "k8s.io", "images", "import", "-")

    def tag_image(self, name: str, other: str) -> None:
        """Have its node know an image by another name, too."""
        self._run_with(Path(os.devnull), "ctr", "-n", "k8s.io", "images", "tag", "--force", name, other)

    def _run_with(self, stdin: Path, *words: str) -> None:
        with stdin.open("rb") as opened:
            done = subprocess.run(
                [*self._enter(), *words], stdin=opened, capture_output=True, text=True, env=clean_environment()
            )
        if done.returncode:
            raise SiteError(f"{words}: {done.stderr.strip()}")

    def advertise(self, **resources: int) -> None:
        """Have its node count resources of these names below example.com, as a device plug-in would."""
        path = "/status/capacity/example.com~1"
        changes = [{"op": "add", "path": f"{path}{name}", "value": str(count)} for name, count in resources.items()]
        headers = {"Authorization": f"Bearer {self.tokens['admin']}", "Content-Type": "application/json-patch+json"}
        url, body = f"{self.server}/api/v1/nodes/node1/status", json.dumps(changes).encode()
        trusted = ssl.create_default_context(cafile=str(self.authority))
        urlopen(Request(url, body, headers, method="PATCH"), context=trusted).close()
        deadline = time.monotonic() + PATIENCE
        while not {f"example.com/{name}" for name in resources} <= self._list_allocatable().keys():
            if time.monotonic() > deadline:
                raise SiteError("the kubelet doesn't give out what its node has")
            time.sleep(0.2)

    def _list_allocatable(self) -> dict[str, str]:
        return dict(json.loads(self.kubectl("get", "node", "node1", "-o", "json"))["status"]["allocatable"])

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Make these objects what they are to be."""
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))

    def list_names(self, kind: str, namespace: str) -> list[str]:
        """The names of what there is of a kind."""
        return self.kubectl("-n", namespace, "get", kind, "-o", "name").split()

    def write_config(self, target: Path, person: str, namespace: str, **user: Any) -> Path:
        """A person's kubeconfig, as they would get it from whoever runs the cluster."""
        known = {"server": self.server, "certificate-authority": str(self.authority)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.name, "cluster": known}],
            "users": [{"name": person, "user": user or {"token": self.tokens[person]}}],
            "contexts": [{"name": "here", "context": {"cluster": self.name, "user": person, "namespace": namespace}}],
            "current-context": "here",
        }
        target.write_text(yaml.safe_dump(document))
        target.chmod(0o600)
        return target


@contextmanager
def start_cluster() -> Iterator[Cluster]:
    """A cluster of one node, whose API server is reached from this machine and from nowhere else."""
    if not (CGROUPS / "memory").is_dir():
        raise Skip("Kubernetes 1.20 needs control groups of version 1, and this machine has none")
    parts = have_parts()
    with tempfile.TemporaryDirectory(prefix="sublet-kubernetes-", dir="/var/tmp") as directory:
        name = f"sublet-k8s-{os.getpid()}"
        try:
            yield _start(parts, name, Path(directory))
        finally:
            _stop(name)


def _start(parts: ClusterParts, name: str, directory: Path) -> Cluster:
    log, root = directory / "log", directory / "root"
    log.mkdir()
    root.mkdir()
    tokens = {person: secrets.token_hex(16) for person in PEOPLE}
    rows = (f"{tokens[person]},{person},{person},{group}" for person, group in PEOPLE.items())
    (log / "tokens.csv").write_text("".join(f"{row.rstrip(',')}\n" for row in rows))
    address = _make_network(name)
    _make_cgroups(name)
    words = [*("bash", str(HERE / "machine.sh")), str(root), str(parts.box), str(parts.programs), str(parts.images)]
    argv = ["nsenter", f"--net={NAMESPACES / name}", *UNSHARE, *words, str(log), name, address]
    with (log / "machine.log").open("wb") as output:
        machine = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/")
    deadline = time.monotonic() + PATIENCE
    while not (log / "ready").exists():
        if machine.poll() is not None or time.monotonic() > deadline:
            raise SiteError(f"the cluster is not ready:\n{_last_words(log)}")
        time.sleep(0.1)
    return Cluster(name, address, log, tokens, _first_process(machine.pid))


def _first_process(pid: int) -> int:
    """The machine's first process: the child of `unshare`."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def _last_words(log: Path) -> str:
    ends = {file: file.read_text(errors="replace").splitlines()[-3:] for file in sorted(log.glob("*.log"))}
    return "\n".join(f"{file.name}: {line}" for file, lines in ends.items() for line in lines)


def _make_network(name: str) -> str:
    """A namespace with a wire to this machine; the address of its far end."""
    listed = subprocess.run(["ip", "-o", "addr"], capture_output=True, text=True).stdout
    index = next(number for number in range(1, 251) if f"10.204.{number}." not in listed)
    new_namespace(name)
    near = f"sublet-k8s{index}"
    wire(None, near, name, "eth0")
    ip(f"addr add 10.204.{index}.1/30 dev {near}")
    ip(f"addr add 10.204.{index}.2/30 dev eth0", within=name)
    return f"10.204.{index}.2"


def _make_cgroups(name: str) -> None:
    for controller in CONTROLLERS:
        top = CGROUPS / controller / name
        top.mkdir(parents=True)
        if controller == "cpuset":
            for file in ("cpuset.cpus", "cpuset.mems"):
                (top / file).write_text((CGROUPS / "cpuset" / file).read_text())


def _stop(name: str) -> None:
    """Take the machine's power away, and remove its wire, namespace and control groups."""
    deadline = time.monotonic() + 20
    while pids := _list_processes(name):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise SiteError(f"these processes of {name} do not end: {pids}")
        time.sleep(0.05)
    if (NAMESPACES / name).exists():
        run(["ip", "netns", "del", name])
    for controller in CONTROLLERS:
        top = CGROUPS / controller / name
        while top.exists() and time.monotonic() < deadline:
            for path in [*sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True), top]:
                with suppress(OSError):
                    path.rmdir()


def _list_processes(name: str) -> list[int]:
    """All that run in its control groups or in its network: pods have networks of their own."""
    pids = set()
    for file in (CGROUPS / "pids" / name).rglob("cgroup.procs"):
        with suppress(OSError):
            pids |= {int(word) for word in file.read_text().split()}
    if (NAMESPACES / name).exists():
        done = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True)
        pids |= {int(word) for word in done.stdout.split()}
    return sorted(pids)
