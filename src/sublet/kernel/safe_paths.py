"""Checks whether others could replace or write a file at some path, and so run programs as this user.

Anyone who can write to a directory can rename the files in it. So each directory and each link on the way to a path has
to belong to this user or to root, and be writable by nobody else, unless its sticky bit keeps everyone to their own
files.

Three things look dangerous and are accepted, since the user couldn't change them and they add no risk:

- a group without other members, such as the private groups that many distributions give each user;
- an owner without an id in this user namespace (in containers, root outside is `nobody`), where only that owner can
  write; it may as well be root, and most often is;
- an owner or a group that can write above the user's own home directory: they could change the user's shell anyway. A
  directory that *everyone* can write to is refused there, too.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

ROOT = 0
MOST_LINKS = 40  # as many as the kernel follows
ALL_IDS = 2**32 - 1
ACL_HEADER = 4  # bytes: the version
ACL_USER, ACL_OTHERS = 0x02, (0x08, 0x20)  # tags: a named user; a named group, and everyone
LOCAL_SOURCES = frozenset({"files", "systemd", "altfiles", "db"})  # account databases that can be listed completely


def find_danger_above(path: str) -> str:
    """Return which directory or link on the way to a path lets others replace it; empty if none does."""
    for place in _list_places(path):
        try:
            status = os.lstat(place)
        except OSError:
            break  # it doesn't exist yet, or only its owner can see it
        if danger := _find_danger_in(place, status):
            return danger
    return ""


def find_danger_to(path: str) -> str:
    """Return why others could replace or write a file, or wrote it; empty if they can't, or it doesn't exist yet."""
    path = os.path.abspath(path)
    try:
        if os.statvfs(path).f_flag & os.ST_RDONLY:  # such as a ConfigMap of Kubernetes, whose directory has mode 777
            return ""
    except OSError:
        return find_danger_above(path)
    return find_danger_above(path) or _find_danger_of(path)


def find_stranger(path: str) -> str:
    """Return whose a file is, or the link to it, if it belongs to neither this user nor root; empty if it does."""
    try:
        statuses = os.lstat(path), os.stat(path)
    except OSError:
        return ""
    strangers = (status.st_uid for status in statuses if not is_trusted(status) and not _is_foreign(status))
    return next((name_user(uid) for uid in strangers if stat.S_ISREG(statuses[1].st_mode)), "")


def _find_danger_of(path: str) -> str:
    if stranger := find_stranger(path):
        return f"it belongs to {stranger}"
    status = os.stat(path)
    if stat.S_ISREG(status.st_mode) and is_writable_by_others(path, status):
        return f"others can write it (chmod go-w {path})"
    return ""


def is_trusted(status: os.stat_result) -> bool:
    """Whether a file belongs to this user or to root, who can do everything anyway."""
    return status.st_uid in (os.geteuid(), ROOT)


def is_writable_by_others(path: str, status: os.stat_result) -> bool:
    """Whether anyone but its owner and root can write to a file."""
    return bool(status.st_mode & stat.S_IWOTH) or _is_writable_by_a_group(path, status)


def passes_on_writing(path: str) -> bool:
    """Whether a directory's default access control list lets others write what is made in it."""
    try:
        entries = os.getxattr(path, "system.posix_acl_default")[ACL_HEADER:]
    except OSError:
        return False
    import struct  # only in this rare case

    return any(
        permissions & os.W_OK and (tag in ACL_OTHERS or (tag == ACL_USER and who not in (os.geteuid(), ROOT)))
        for tag, permissions, who in struct.iter_unpack("<HHI", entries)
    )


def name_user(uid: int) -> str:
    """Return a user's name, or their id in words if they have no name."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _list_places(path: str) -> Iterator[str]:
    """Yield each directory that is searched on the way to a path, and each link, as the kernel meets them."""
    at, rest, links = "/", path.split("/")[::-1], 0
    while rest:
        name = rest.pop()
        if name in ("", "."):
            continue
        if name == "..":
            at = os.path.dirname(at)
            continue
        yield at
        place = os.path.join(at, name)
        try:
            target = os.readlink(place)
        except OSError:
            at = place
            continue
        yield place
        links += 1
        if links > MOST_LINKS:
            return
        at = "/" if target.startswith("/") else at
        rest += target.split("/")[::-1]


def _find_danger_in(place: str, status: os.stat_result) -> str:
    """Return what is unsafe about a directory or link on the way to a path; empty if it is safe."""
    is_link, is_sticky = stat.S_ISLNK(status.st_mode), bool(status.st_mode & stat.S_ISVTX)
    if not is_link and not is_sticky and status.st_mode & stat.S_IWOTH:
        return f"everyone can write in {place}"
    if not is_trusted(status) and not _is_foreign(status) and not _is_above_home(place):
        return f"{place}, on the way to it, belongs to {name_user(status.st_uid)}"
    if is_link or is_sticky or not _is_writable_by_a_group(place, status) or _is_above_home(place):
        return ""
    remedy = f" (chmod g-w {place})" if status.st_uid == os.geteuid() else ""
    return f"the group {_name_group(status.st_gid)} can write in {place}{remedy}"


def _is_writable_by_a_group(path: str, status: os.stat_result) -> bool:
    """Whether others can write by a group or an access control list, whose mask is shown as the group's bits."""
    if not status.st_mode & stat.S_IWGRP:
        return False
    return _has_list(path) or not _is_alone_in(status.st_gid)


def _has_list(path: str) -> bool:
    try:
        return bool(os.getxattr(path, "system.posix_acl_access"))
    except OSError:
        return False


def _is_alone_in(gid: int) -> bool:
    """Whether a group has no members but this user and root, also not as anyone's primary group."""
    import grp  # only in this rare case
    import pwd

    try:
        group = grp.getgrgid(gid)
    except KeyError:
        return False
    us = {name_user(os.geteuid()), name_user(ROOT)}
    if not us.issuperset(group.gr_mem):
        return False
    if gid == ROOT or group.gr_name == name_user(os.geteuid()):
        return True
    return _lists_all_accounts() and us.issuperset(
        account.pw_name for account in pwd.getpwall() if account.pw_gid == gid
    )


def _lists_all_accounts() -> bool:
    """Whether getpwall lists all accounts of this machine: those of a directory service are mostly omitted."""
    try:
        with open("/etc/nsswitch.conf", encoding="utf-8", errors="replace") as file:
            lines = [line.partition("#")[0].partition(":") for line in file]
    except OSError:
        return True  # then accounts come from files only
    return all(LOCAL_SOURCES.issuperset(words.split()) for what, _, words in lines if what.strip() == "passwd")


def _is_foreign(status: os.stat_result) -> bool:
    """Whether the owner may have no id in this user namespace, like the host's root in most containers."""
    try:
        with open("/proc/sys/kernel/overflowuid", encoding="ascii") as file:
            overflow = int(file.read())
        with open("/proc/self/uid_map", encoding="ascii") as file:
            ids = sum(int(line.split()[2]) for line in file)
    except (OSError, ValueError, IndexError):
        return False
    return status.st_uid == overflow and ids < ALL_IDS


def _is_above_home(place: str) -> bool:
    return _find_own_directory().startswith(place.rstrip("/") + "/")


def _find_own_directory() -> str:
    """Return this user's home directory from the account database, whatever the environment says."""
    import pwd

    try:
        return os.path.realpath(pwd.getpwuid(os.geteuid()).pw_dir)
    except KeyError:
        return ""


def _name_group(gid: int) -> str:
    import grp

    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
