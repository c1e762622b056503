"""Directories that jobs share: what is in one, as HTCondor would send it, and the archive that stands for it."""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

MOST = (
    50_000  # entries from which on a directory is left to HTCondor: it would take too long to look at, again and again
)


class NotShareable(Exception):
    """It has something that HTCondor doesn't send, such as a FIFO or a link to a directory, or too much."""


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """Something in a directory; a link to a file is that file."""

    name: str  # below the directory
    path: str
    seen: os.stat_result
    link: os.stat_result | None = None  # of the link by which it is named


def list_tree(root: str) -> list[TreeEntry]:
    """All that is in a directory, in the order of the names; NotShareable if HTCondor has to decide."""
    entries: list[TreeEntry] = []
    for entry in _walk(root, ""):
        entries.append(entry)
        if len(entries) > MOST:
            raise NotShareable
    return entries


def _walk(directory: str, prefix: str) -> Iterator[TreeEntry]:
    with os.scandir(directory) as entries:
        inside = sorted(entries, key=lambda entry: entry.name)
    for entry in inside:
        name, seen = f"{prefix}{entry.name}", entry.stat()
        link = entry.stat(follow_symlinks=False) if entry.is_symlink() else None
        if stat.S_ISDIR(seen.st_mode) and link is None:
            yield TreeEntry(name, entry.path, seen)
            yield from _walk(entry.path, f"{name}/")
        elif stat.S_ISREG(seen.st_mode):
            yield TreeEntry(name, entry.path, seen, link)
        else:
            raise NotShareable


def describe_tree(root: str, entries: list[TreeEntry]) -> str:
    """A text that is another one as soon as anything in a directory may be."""
    lines = [f"{root} {_describe(os.stat(root))}"]
    lines += [
        f"{entry.name} {_describe(entry.seen)} {_describe(entry.link) if entry.link else ''}" for entry in entries
    ]
    return hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()


def _describe(seen: os.stat_result) -> str:
    return f"{seen.st_mode} {seen.st_size} {seen.st_mtime_ns} {seen.st_ctime_ns} {seen.st_ino} {seen.st_dev}"


def digest_tree(path: str) -> str:
    """The digest of the archive that stands for a directory, without making it."""
    sink = _Hashed()
    write_tree(path, cast("IO[bytes]", sink))
    return f"sha256:{sink.digest.hexdigest()}"


def pack_tree(path: str, archive: Path) -> None:
    """Make the archive that stands for a directory."""
    with archive.open("wb") as target:
        write_tree(path, target)


def write_tree(path: str, target: IO[bytes]) -> None:
    """Write a directory as an archive, the same bytes for the same content: itself, or with a slash what is in it."""
    top = "" if path.endswith("/") else f"{os.path.basename(path)}/"
    with tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        if top:
            archive.addfile(_member(top.rstrip("/"), os.stat(path)))
        for entry in list_tree(path):
            member = _member(f"{top}{entry.name}", entry.seen)
            if member.isdir():
                archive.addfile(member)
            else:
                with open(entry.path, "rb") as source:
                    archive.addfile(member, source)


def _member(name: str, seen: os.stat_result) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    is_directory = stat.S_ISDIR(seen.st_mode)
    member.type = tarfile.DIRTYPE if is_directory else tarfile.REGTYPE
    member.mode = (seen.st_mode & 0o755) | (0o700 if is_directory else 0o400)
    member.mtime = int(seen.st_mtime)
    member.size = 0 if is_directory else seen.st_size
    return member


class _Hashed:
    """A file of which only the digest is kept."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return len(data)
