"""Short paths to directories of Unix sockets, whose addresses have at most 107 bytes.

Such a path is a symbolic link with a random name, in a directory where nobody else can replace this user's files. The
sockets stay in their own directory, which only this user can enter, so links needn't be recorded: a link is found again
by its target, and made again if a cleanup of old files removed it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from sublet.kernel.safe_paths import find_danger_above

LONGEST_SOCKET = 107  # bytes of a Unix socket's address on Linux
LONGEST = LONGEST_SOCKET - 33  # bytes of a directory: ssh and HTCondor make sockets in it with names of up to 32
PLACES = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 (a link is made there exclusively, with a random name)
PREFIX = "sublet-to-"
TRIES = 4
_known: dict[str, str] = {}  # directory → the link that this process used last


def shorten(directory: Path, places: Sequence[str] = PLACES) -> Path:
    """Return a path to the directory that is short enough for sockets in it: its own, or a link, made if necessary.

    Return the directory's own path if it doesn't exist yet, or if no link can be made.
    """
    whole = os.path.abspath(directory)
    if len(os.fsencode(whole)) <= LONGEST or not os.path.isdir(whole):
        return directory
    link = _known.get(whole, "")
    if not link or not _holds(link, whole):
        link = next(_list_links(whole, places), "") or _make(whole, places)
    if not link:
        return directory
    _known[whole] = link
    return Path(link)


def remove_links(directory: Path, places: Sequence[str] = PLACES) -> None:
    """Remove all of this user's links to a directory that isn't used any more."""
    whole = os.path.abspath(directory)
    _known.pop(whole, None)
    for link in list(_list_links(whole, places)):
        with suppress(OSError):
            os.unlink(link)


def fits(path: str | Path) -> bool:
    """Whether a path is short enough for a Unix socket."""
    return len(os.fsencode(path)) <= LONGEST_SOCKET


def _holds(link: str, whole: str) -> bool:
    """Whether a link leads to the directory; a missing link is made again, since other processes may use its name."""
    with suppress(OSError):
        if not os.path.lexists(link):
            os.symlink(whole, link)
    return _leads_to(link) == whole


def _make(whole: str, places: Sequence[str]) -> str:
    """Make a new link in the first place that allows it, and remove dangling ones there; return "" if none does."""
    for place in _list_safe(places):
        for link, target in _list_ours(place):
            if not os.path.lexists(target):
                with suppress(OSError):
                    os.unlink(link)
        for _ in range(TRIES):
            link = f"{place}/{PREFIX}{os.urandom(5).hex()}"
            try:
                os.symlink(whole, link)
            except FileExistsError:
                continue
            except OSError:
                break  # a full or read-only disk: try the next place
            return link
    return ""


def _list_links(whole: str, places: Sequence[str]) -> Iterator[str]:
    return (link for place in _list_safe(places) for link, target in _list_ours(place) if target == whole)


def _list_ours(place: str) -> Iterator[tuple[str, str]]:
    """Yield this user's links in a directory, each with its target."""
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return
    for name in names:
        if name.startswith(PREFIX) and (target := _leads_to(f"{place}/{name}")):
            yield f"{place}/{name}", target


def _list_safe(places: Sequence[str]) -> Iterator[str]:
    """Yield the directories in which nobody else can replace this user's files."""
    return (place for place in places if os.path.isdir(place) and not find_danger_above(f"{place}/{PREFIX}"))


def _leads_to(link: str) -> str:
    """Return the target of a link of this user; empty if it is another's, or no link."""
    try:
        return os.readlink(link) if os.lstat(link).st_uid == os.getuid() else ""
    except OSError:
        return ""
