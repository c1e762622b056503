"""Checks whether a service can run on this machine: not on a login node, nor with its home on a network file system."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# SQLite's write-ahead log needs shared memory and locks, which these don't provide.
NETWORK = frozenset(
    {
        "nfs",
        "nfs4",
        "lustre",
        "gpfs",
        "beegfs",
        "cifs",
        "smb3",
        "smbfs",
        "ceph",
        "afs",
        "panfs",
        "pvfs2",
        "orangefs",
    }
)
LOCAL_FUSE = frozenset({"fuseblk", "fuse.fuse-overlayfs", "fuse.overlayfs", "fuse.ntfs-3g"})
LOGIN_NAME = re.compile(r"(^|[-_.])(login|logon|submit|frontend|front|head|uan|ln)[-_]?\d*([-_.]|$)", re.IGNORECASE)
OVERRIDE = "SUBLET_ANYWAY"


@dataclass(frozen=True)
class Facts:
    """The facts about a machine that decide whether a service can run on it."""

    home: str
    filesystem: str  # the type of the home's file system: ext4, nfs4 …
    hostname: str
    slurm: bool  # this machine can submit to Slurm
    slurmd: bool  # this machine also runs Slurm's jobs
    in_job: bool  # this process is in such a job


@dataclass(frozen=True)
class Objection:
    """A reason not to run a service here, and what to do instead."""

    why: str
    advice: str


def objections(facts: Facts) -> Sequence[Objection]:
    """Return the reasons against a service on this machine."""
    texts = []
    if on_network(facts.filesystem):
        texts.append(
            Objection(
                f"SUBLET_HOME ({facts.home}) is on a network file system ({facts.filesystem}): databases break there",
                "Make one on a local disk, mkdir -m 700 /var/tmp/$USER-sublet, and set SUBLET_HOME to it; if mkdir "
                "says that it exists and you did not make it, choose another name.",
            )
        )
    if facts.slurm and not facts.slurmd and not facts.in_job and LOGIN_NAME.search(facts.hostname):
        texts.append(
            Objection(
                f"{facts.hostname} looks like a login node of a Slurm cluster, which is shared and not for services",
                "Run Sublet on your own machine, or inside a job; if this is no login node, add --anyway.",
            )
        )
    return texts


def on_network(filesystem: str) -> bool:
    """Whether a type of file system is remote; FUSE is, except for types that are known to be local."""
    return filesystem in NETWORK or (filesystem.startswith("fuse") and filesystem not in LOCAL_FUSE)


def probe(home: str) -> Facts:
    """Collect the facts about this machine."""
    return Facts(
        home=home,
        filesystem=filesystem_of(home, _mounts()),
        hostname=os.uname().nodename,
        slurm=shutil.which("sbatch") is not None or os.path.exists("/etc/slurm/slurm.conf"),
        slurmd=_runs("slurmd"),
        in_job="SLURM_JOB_ID" in os.environ,
    )


def filesystem_of(path: str, mounts: Iterable[str]) -> str:
    """Return the type of the file system that a path is or would be on; `mounts` are lines of /proc/self/mountinfo."""
    real = os.path.realpath(path)
    longest, kind = "", "unknown"
    for line in mounts:
        words, _, rest = line.partition(" - ")
        point = words.split()[4].replace("\\040", " ")
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(longest):
            longest, kind = point, rest.split()[0]
    return kind


def _mounts() -> list[str]:
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            return file.readlines()
    except OSError:
        return []


def _runs(name: str) -> bool:
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/comm", encoding="utf-8", errors="replace") as file:
                    if file.read().strip() == name:
                        return True
            except OSError:
                continue  # the process has ended meanwhile
    return False
