"""Short paths to directories in which there are Unix sockets: the address of one has 107 bytes at most.

Such a path is a symbolic link with a random name, in a directory where nobody else can replace what is ours. Sockets
themselves stay in their own directory, which only we can enter, so that no link is worth keeping: it is found again by
where it leads, and made again if someone removed it for its age.
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
_known: dict[str, str] = {}  # a directory → the link that this process used last


def shorten(directory: Path, places: Sequence[str] = PLACES) -> Path:
    """A path to this directory that is short enough for sockets in it: its own, else a link, made if need be.

    It stays as it is where it is not there yet, and where no link can be made.
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
    """Remove all links of ours to a directory that is given up."""
    whole = os.path.abspath(directory)
    _known.pop(whole, None)
    for link in list(_list_links(whole, places)):
        with suppress(OSError):
            os.unlink(link)


def fits(path: str | Path) -> bool:
    """Whether a Unix socket can have this path."""
    return len(os.fsencode(path)) <= LONGEST_SOCKET


def _holds(link: str, whole: str) -> bool:
    """Whether a link leads there; one that is gone is made again by the same name, which others may remember."""
    with suppress(OSError):
        if not os.path.lexists(link):
            os.symlink(whole, link)
    return _leads_to(link) == whole


def _make(whole: str, places: Sequence[str]) -> str:
    """A new link, in the first place that takes it; those that lead nowhere any more are removed there."""
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
                break  # a full disk, or a read-only one: the next place may do
            return link
    return ""


def _list_links(whole: str, places: Sequence[str]) -> Iterator[str]:
    return (link for place in _list_safe(places) for link, target in _list_ours(place) if target == whole)


def _list_ours(place: str) -> Iterator[tuple[str, str]]:
    """The links of this user's in a place, each with where it leads."""
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return
    for name in names:
        if name.startswith(PREFIX) and (target := _leads_to(f"{place}/{name}")):
            yield f"{place}/{name}", target


def _list_safe(places: Sequence[str]) -> Iterator[str]:
    """The places where nobody else can replace what we make."""
    return (place for place in places if os.path.isdir(place) and not find_danger_above(f"{place}/{PREFIX}"))


def _leads_to(link: str) -> str:
    """Where a link of ours leads; empty if it is none."""
    try:
        return os.readlink(link) if os.lstat(link).st_uid == os.getuid() else ""
    except OSError:
        return ""
