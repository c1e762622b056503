"""A session's TMPDIR: a directory with the session's other files, and a short path that leads to it.

Programs put Unix sockets into TMPDIR, and the path of a socket has room for 107 bytes: what Python's multiprocessing,
Parsl or Ray append must still fit. The short path is a symbolic link with a random name in a directory where nobody
else can replace it; the files themselves stay where they are counted and removed with the session.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence

PLACES = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 (a link is made there exclusively, with a random name)
SHORT = 40  # the longest TMPDIR, in characters
PREFIX = "sublet-"
TARGET = re.compile(r"(/.*)/sessions/[^/]+/tmp")
TRIES = 4


def shorten(directory: str, places: Sequence[str] = PLACES) -> str:
    """Make a short path to a directory; return its own path if that is short already or no link can be made."""
    if len(os.fsencode(directory)) <= SHORT:
        return directory
    for place in filter(is_safe, places):
        for _ in range(TRIES):
            link = f"{place}/{PREFIX}{os.urandom(5).hex()}"
            try:
                os.symlink(directory, link)
            except FileExistsError:
                continue
            except OSError:
                break  # a full or read-only disk: the next place may do
            return link
    return directory


def is_safe(place: str) -> bool:
    """Whether nobody else can replace what we make in a directory."""
    try:
        status = os.stat(place)
    except OSError:
        return False
    is_shared = bool(status.st_mode & 0o022)
    is_trusted = status.st_uid in (0, os.getuid()) and (not is_shared or bool(status.st_mode & stat.S_ISVTX))
    return stat.S_ISDIR(status.st_mode) and is_trusted


def refresh(link: str, directory: str) -> None:
    """Touch a link so that cleaners of /tmp don't remove it; make it again if one did."""
    if link == directory:
        return
    try:
        os.utime(link, follow_symlinks=False)
    except FileNotFoundError:
        try:
            os.symlink(directory, link)
        except OSError:
            return
    except OSError:
        return


def remove_link(link: str, directory: str) -> None:
    """Remove a link if it is ours and leads to this directory."""
    if leads_to(link) == directory != link:
        try:
            os.unlink(link)
        except OSError:
            return


def remove_files(directory: str) -> None:
    """Remove a directory with its contents, even if the job made parts of it unwritable."""
    for folder, _, _ in os.walk(directory):
        try:
            os.chmod(folder, 0o700)
        except OSError:
            continue
    shutil.rmtree(directory, ignore_errors=True)


def leads_to(link: str) -> str:
    """Return the target of a link of ours; empty if it isn't one."""
    try:
        return os.readlink(link) if os.lstat(link).st_uid == os.getuid() else ""
    except OSError:
        return ""


def links(places: Sequence[str] = PLACES) -> Iterator[tuple[str, str]]:
    """Yield the links of this user's sessions, each with the directory that it leads to."""
    for place in filter(is_safe, places):
        try:
            names = os.listdir(place)
        except OSError:
            continue
        for name in names:
            link = f"{place}/{name}"
            if name.startswith(PREFIX) and TARGET.fullmatch(target := leads_to(link)):
                yield link, target


def sweep(is_over: Callable[[str], bool], places: Sequence[str] = PLACES) -> None:
    """Remove the links of sessions that have ended, and dangling ones of any service of this user."""
    for link, target in links(places):
        if not os.path.isdir(target) or is_over(target):
            remove_link(link, target)
