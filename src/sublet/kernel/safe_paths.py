"""Whether others could put something else in a path's place, or write what lies there: they could run programs as us.

Whoever can write a directory can rename what is in it. So each directory, and each link, on the way to a path has to
belong to this user or to root, and be writable by nobody else, unless its sticky bit keeps everyone to their own files.
Three things look dangerous and are not refused, since nobody could do anything about them and nothing is lost by them:

- a group in which nobody else is, such as the private groups that many distributions give each user;
- an owner without an id in this user namespace (containers: root outside is `nobody` in them), where only that owner
  can write; it may as well be root, and most often is;
- an owner or a group that can write above the user's own home directory: they can change the user's shell anyway. What
  *everyone* can write is refused there, too.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

ROOT = 0
MOST_LINKS = 40  # as many as the kernel follows
ALL_IDS = 2**32 - 1
LOCAL_SOURCES = frozenset({"files", "systemd", "altfiles", "db"})  # of accounts; these can be listed as a whole


def find_danger_above(path: str) -> str:
    """Which directory or link on the way to a path lets others put another in its place; nothing if none does."""
    for place in _list_places(path):
        try:
            status = os.lstat(place)
        except OSError:
            break  # nothing is there yet, or nobody but its owner sees it
        if danger := _find_danger_in(place, status):
            return danger
    return ""


def is_trusted(status: os.stat_result) -> bool:
    """Whether it belongs to this user, or to root, who can do everything anyway."""
    return status.st_uid in (os.geteuid(), ROOT)


def is_writable_by_others(path: str, status: os.stat_result) -> bool:
    """Whether more than its owner and root can change it."""
    return bool(status.st_mode & stat.S_IWOTH) or _is_writable_by_a_group(path, status)


def name_user(uid: int) -> str:
    """What someone is called, for a sentence."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _list_places(path: str) -> Iterator[str]:
    """Each directory in which a name on the way is looked up, and each link, as the kernel meets them."""
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
    """What others could do with a directory or a link on the way."""
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
    """Whether others can write by a group, or by an access control list, which shows as the group's right."""
    if not status.st_mode & stat.S_IWGRP:
        return False
    return _has_list(path) or not _is_alone_in(status.st_gid)


def _has_list(path: str) -> bool:
    try:
        return bool(os.getxattr(path, "system.posix_acl_access"))
    except OSError:
        return False


def _is_alone_in(gid: int) -> bool:
    """Whether nobody but this user and root is in a group: a private one, or one that no other account has."""
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
    """Whether all accounts of this machine can be listed: those of a directory service mostly can't."""
    try:
        with open("/etc/nsswitch.conf", encoding="utf-8", errors="replace") as file:
            lines = [line.partition("#")[0].partition(":") for line in file]
    except OSError:
        return True  # there is nothing but files then
    return all(LOCAL_SOURCES.issuperset(words.split()) for what, _, words in lines if what.strip() == "passwd")


def _is_foreign(status: os.stat_result) -> bool:
    """Whether its owner may be someone who has no id in this user namespace, as root outside of most containers."""
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
    """This user's home directory, as the machine knows it, whatever the environment says."""
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
