"""The steps between fork and exec: the limits that are set on a job's main process."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
from typing import Any

from . import mounts
from .processes import threads_of

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
WITHIN_GROUP, WITHOUT_GROUP = b"g", b"r"  # the shim's signal that the process may continue


class VolumesFailed(OSError):
    """The volumes could not be put in place this way."""


def prctl(option: int, value: int) -> None:
    """Set a Linux-specific property of this process."""
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def become(job: dict[str, Any], environment: dict[str, str], outputs: list[int], go: int, volumes: str) -> None:
    """Turn this process into the job; returns only by raising OSError."""
    parent = os.getppid()
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    word = os.read(go, 1)
    if not word:
        os._exit(1)  # the shim died before it gave the signal: nobody would supervise the job
    if word == WITHOUT_GROUP:
        twice = 2 * job["memory"]  # the watch enforces the limit and explains it; this is a second line of defence
        resource.setrlimit(resource.RLIMIT_DATA, (twice, twice))
        most = threads_of(os.getuid()) + job["processes"]  # the kernel counts all processes of this user
        most = _within(most, resource.getrlimit(resource.RLIMIT_NPROC)[1])
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    if "files" in job:  # the service has a higher limit of descriptors than programs expect
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
        if signal.getsignal(number) is signal.SIG_IGN:  # set by Python, or by nohup before it; it would be inherited
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.umask(0o022)
    os.execvpe(job["argv"][0], job["argv"], environment)  # noqa: S606 (this is what it is for)


def _within(wanted: int, hard: int) -> int:
    """Return a limit that this process can set."""
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def attach(job: dict[str, Any], volumes: str) -> None:
    """Make the volumes visible where the job expects them."""
    put = mounts.bind if volumes == "bind" else mounts.link
    try:
        if job["mounts"] and volumes == "bind":
            mounts.enter_own_namespace()
        for mount in job["mounts"]:
            is_ours = put is mounts.bind or not mount.get("shared")  # a link would change their permissions
            put(mount["source"], os.path.join(job["work"], mount["target"]), mount["read_only"] and is_ours)
    except OSError as error:
        raise VolumesFailed(str(error)) from error
