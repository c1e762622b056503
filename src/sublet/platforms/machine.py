"""What this machine has: cores, memory, GPUs, free disk space, and the tools that kinds can use."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from sublet.kernel.container_network import Network, choose_networks, look_at_machine
from sublet.platforms.local.shim import cgroups

MIB, GIB = 1 << 20, 1 << 30
TOOLS = (
    "sh",
    "bash",
    "python3",
    "apptainer",
    "singularity",
    "podman",
    "docker",
    "ch-run",
    "ch-image",
    "ch-convert",
    "papermill",
    "jupyter-lab",
    "jupyter-nbconvert",
    "Xvnc",
    "Xtigervnc",
    "code-server",
    "openvscode-server",
    "rserver",
    "unsquashfs",
    "git",
)
CLUSTER_TOOLS = tuple(tool for tool in TOOLS if tool != "docker")  # clusters don't let their users talk to the daemon
CONTAINER_TOOLS = {name: name for name in ("podman", "apptainer", "singularity", "docker")} | {"charliecloud": "ch-run"}
PROBE = 64 * MIB
HERE = os.path.dirname(os.path.abspath(__file__))


def cores() -> list[int]:
    """Return the numbers of the cores that this process may use."""
    there = sorted(os.sched_getaffinity(0))
    return there[: cgroups.core_limit() or len(there)]


def memory() -> int:
    """Return the memory in bytes that this process may use, less a small reserve for the machine itself."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    total = min(total, cgroups.memory_limit() or total)
    return (total - min(GIB, total // 10)) // MIB * MIB


def gpus() -> int:
    """Return how many NVIDIA GPUs the kernel shows."""
    try:
        return len(os.listdir("/proc/driver/nvidia/gpus"))
    except OSError:
        return 0


def scratch(path: Path) -> int:
    """Return half of the free disk space, in whole GiB of bytes; the rest is left for use outside of bookings."""
    return shutil.disk_usage(path).free // 2 // GIB * GIB


def tools() -> dict[str, str]:
    """Return the installed tools with their paths: on the PATH, or beside the Python that runs the service."""
    beside = os.path.dirname(sys.executable)
    paths = {tool: path for tool in TOOLS if (path := shutil.which(tool) or shutil.which(tool, path=beside))}
    paths["python3"] = sys.executable
    if "docker" in paths and not docker_answers():
        del paths["docker"]
    return paths


def docker_answers() -> bool:
    """Whether the Docker daemon answers: without it, the command can't run anything."""
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not host.startswith("unix://"):
        return True  # a remote daemon: asking it would take too long here
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(0.5)
        try:
            connection.connect(host.removeprefix("unix://"))
            connection.sendall(b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n")
            return b" 200 " in connection.recv(64)
        except OSError:
            return False


def memory_note(groups: bool) -> str:
    """Describe how a job's memory limit is enforced here; if cgroups are to be used, try to make one."""
    group = cgroups.make(f"sublet-probe-{os.getpid()}", PROBE, 1, 1) if groups else None
    if group is None:
        return "memory is limited by watching each session's processes, with RLIMIT_DATA behind it"
    group.remove()
    return f"memory is limited by a cgroup of version {group.version} for each session"


def describe_volumes() -> tuple[bool, str]:
    """Return whether sessions can have mount namespaces here, and describe how read-only volumes are enforced.

    A child process tries to enter a namespace.
    """
    code = (
        "import sys; sys.path.append(sys.argv[1]); from shim.mounts import enter_own_namespace; enter_own_namespace()"
    )
    tried = subprocess.run([sys.executable, "-I", "-S", "-c", code, HERE], capture_output=True, check=False)
    if tried.returncode == 0:
        return True, "read-only volumes are read-only bind mounts, seen by the session alone"
    words = "read-only volumes are links to files without write permission: mount namespaces are not allowed here"
    return False, words


def network_notes(tools: Mapping[str, str], policy: str) -> list[str]:
    """Describe the network that each tool's containers get here, and why."""
    return [f"{tool}'s containers have {network.words}" for tool, network in find_networks(tools, policy).items()]


def find_networks(tools: Mapping[str, str], policy: str) -> dict[str, Network]:
    """Return the network that each tool's containers get here."""
    means = look_at_machine()
    there = (tool for tool, program in CONTAINER_TOOLS.items() if program in tools)
    return {tool: choose_networks(tool, policy, False, means)[0] for tool in there}
