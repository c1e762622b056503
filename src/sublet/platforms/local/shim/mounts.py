"""Volumes below the working directory: bind mounts that only the job sees, or links where those aren't allowed."""

from __future__ import annotations

import ctypes
import os

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_SLAVE, MS_RELATIME = 1, 32, 4096, 16384, 1 << 19, 1 << 21
KEPT = 2 | 4 | 8 | 1024 | 2048  # nosuid, nodev, noexec, noatime, nodiratime: the same bits in statvfs and mount
ST_RELATIME = 4096


def _call(name: str, *arguments: object) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments):
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def enter_own_namespace() -> None:
    """Give this process its own mount namespace; without root, inside a user namespace."""
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        _call("unshare", CLONE_NEWNS)
    else:
        _call("unshare", CLONE_NEWNS | CLONE_NEWUSER)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    _call("mount", b"none", b"/", None, MS_REC | MS_SLAVE, None)


def bind(source: str, target: str, read_only: int) -> None:
    """Bind-mount `source` at `target`, which is created if necessary."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_RDONLY, 0o600))
    _call("mount", os.fsencode(source), os.fsencode(target), None, MS_BIND | MS_REC, None)
    if read_only:
        flags = os.statvfs(target).f_flag
        kept = (flags & KEPT) | (MS_RELATIME if flags & ST_RELATIME else 0)
        _call("mount", None, os.fsencode(target), None, MS_BIND | MS_REMOUNT | MS_RDONLY | kept, None)


def link(source: str, target: str, read_only: int) -> None:
    """Link `target` to `source`; read-only by the files' permissions, which prevent accidents but don't stop root."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.isdir(target) and not os.path.islink(target):
        os.rmdir(target)
    if not os.path.lexists(target):
        os.symlink(source, target)
    if read_only:
        for folder, _, names in os.walk(source):
            for name in [*names, "."]:
                path = os.path.join(folder, name)
                if not os.path.islink(path):
                    os.chmod(path, os.stat(path).st_mode & ~0o222)
