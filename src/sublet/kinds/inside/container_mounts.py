"""Mounts for a container's process only, in its own namespaces. Travels with the job: standard library only."""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from functools import partial

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_SLAVE, MS_RELATIME = 1, 32, 4096, 16384, 1 << 19, 1 << 21
MNT_DETACH = 2
KEPT, ST_RELATIME = 2 | 4 | 8 | 1024 | 2048, 4096  # nosuid, nodev, noexec, noatime, nodiratime: statvfs and mount agree
PARTED = ("\\", ":", ",")  # characters with a meaning in overlay options


def enter_namespaces(kinds: int) -> None:
    """Leave the machine's namespaces of these kinds; without root, by way of a user namespace."""
    libc, uid, gid = ctypes.CDLL(None, use_errno=True), os.geteuid(), os.getegid()
    call(libc.unshare(kinds | (CLONE_NEWUSER if uid else 0)))
    if uid:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)


def make_read_only(paths: list[bytes]) -> None:
    """Make these paths read-only for this process and its children, in their own mount namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    call(libc.mount(b"none", b"/", None, MS_REC | MS_SLAVE, None))
    for path in paths:
        call(libc.mount(path, path, None, MS_BIND | MS_REC, None))
        flags = os.statvfs(path).f_flag
        kept = (flags & KEPT) | (MS_RELATIME if flags & ST_RELATIME else 0)  # a namespace may not drop these
        call(libc.mount(None, path, None, MS_BIND | MS_REMOUNT | MS_RDONLY | kept, None))


def mount_folder(folder: str, target: str) -> None:
    """Mount a folder at another path, for this process and its children."""
    enter_namespaces(CLONE_NEWNS)
    libc = ctypes.CDLL(None, use_errno=True)
    call(libc.mount(b"none", b"/", None, MS_REC | MS_SLAVE, None))
    call(libc.mount(os.fsencode(folder), os.fsencode(target), None, MS_BIND, None))


def unmount(place: str) -> None:
    """Remove a mount, for this process and its children."""
    enter_namespaces(CLONE_NEWNS)
    libc = ctypes.CDLL(None, use_errno=True)
    call(libc.mount(b"none", b"/", None, MS_REC | MS_SLAVE, None))
    call(libc.umount2(os.fsencode(place), MNT_DETACH))


def can_lay_over(root: str) -> bool:
    """Whether an ordinary user of this machine may mount an overlay over a directory, as Podman does."""
    if any(mark in root for mark in PARTED):
        return False
    with tempfile.TemporaryDirectory() as folder:
        trial = partial(_lay_over, os.fsencode(root), os.fsencode(folder))
        try:
            return subprocess.run(["true"], preexec_fn=trial, check=False).returncode == 0
        except (OSError, subprocess.SubprocessError):
            return False


def _lay_over(root: bytes, folder: bytes) -> None:
    """Mount an overlay for this process only, with its upper layer in memory."""
    enter_namespaces(CLONE_NEWNS)
    libc = ctypes.CDLL(None, use_errno=True)
    call(libc.mount(b"none", b"/", None, MS_REC | MS_SLAVE, None))
    call(libc.mount(b"none", folder, b"tmpfs", 0, None))
    for name in (b"upper", b"work", b"merged"):
        os.mkdir(folder + b"/" + name)
    options = b"lowerdir=" + root + b",upperdir=" + folder + b"/upper,workdir=" + folder + b"/work"
    own = b",userxattr" if os.geteuid() else b""
    call(libc.mount(b"none", folder + b"/merged", b"overlay", 0, options + own))


def call(failed: int) -> None:
    """Raise OSError with the kernel's error code if a call has failed."""
    if failed:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
