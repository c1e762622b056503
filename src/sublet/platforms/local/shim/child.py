"""The few steps between fork and exec: what the job's main process is bound to before it is the job's."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from typing import Any

from . import mounts
from .processes import threads_of

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
WITHIN_GROUP, WITHOUT_GROUP = b"g", b"r"  # what the shim says when the process may go on


class VolumesFailed(OSError):
    """The volumes could not be put in place this way."""


def prctl(option: int, value: int) -> None:
    """Set something of this process that only Linux has."""
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def become(job: dict[str, Any], environment: dict[str, str], outputs: list[int], go: int, volumes: str) -> None:
    """Turn this process into the job; returns only by raising OSError."""
    parent = os.getppid()
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    word = os.read(go, 1)
    if not word:
        os._exit(1)  # the shim died before it said so: nobody would stay with the job
    if word == WITHOUT_GROUP:
        twice = 2 * job["memory"]  # the watch enforces the limit and calls it by its name; this is the wall behind it
        resource.setrlimit(resource.RLIMIT_DATA, (twice, twice))
        most = threads_of(os.getuid()) + job["processes"]  # the kernel counts all that this user has running
        most = _within(most, resource.getrlimit(resource.RLIMIT_NPROC)[1])
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    if "files" in job:  # the service has more descriptors than programs are used to
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (_within(job["files"], hard), hard))
    if os.getppid() != parent:
        os._exit(1)  # the shim died meanwhile
    if job["cores"]:
        os.sched_setaffinity(0, job["cores"])
    attach(job, volumes)
    os.chdir(job["work"])
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    for number, file in enumerate(outputs, 1):
        os.dup2(file, number)
    for number in signal.valid_signals():
        if signal.getsignal(number) is signal.SIG_IGN:  # by Python, or by nohup before it; that would be handed on
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.umask(0o022)
    os.execvpe(job["argv"][0], job["argv"], environment)  # noqa: S606 (this is what it is for)


def _within(wanted: int, hard: int) -> int:
    """A limit that this process can set."""
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def attach(job: dict[str, Any], volumes: str) -> None:
    """Put the volumes where the job wants to see them."""
    put = mounts.bind if volumes == "bind" else mounts.link
    try:
        if job["mounts"] and volumes == "bind":
            mounts.enter_own_namespace()
        for mount in job["mounts"]:
            is_ours = put is mounts.bind or not mount.get("shared")  # by a link its files would lose their permissions
            put(mount["source"], os.path.join(job["work"], mount["target"]), mount["read_only"] and is_ours)
    except OSError as error:
        raise VolumesFailed(str(error)) from error
