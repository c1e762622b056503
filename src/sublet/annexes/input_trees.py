"""Directories that jobs share: their content, as HTCondor would send it, and the archive made of it."""

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
    """An entry of a directory; a link to a file is treated as that file."""

    name: str  # relative to the directory
    path: str
    seen: os.stat_result
    link: os.stat_result | None = None  # of the link itself, if the entry is a link


def list_tree(root: str) -> list[TreeEntry]:
    """List everything in a directory, sorted by name; raise NotShareable if the directory must be left to HTCondor."""
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
    """Return a digest that changes whenever anything in a directory may have changed."""
    lines = [f"{root} {_describe(os.stat(root))}"]
    lines += [
        f"{entry.name} {_describe(entry.seen)} {_describe(entry.link) if entry.link else ''}" for entry in entries
    ]
    return hashlib.sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()


def _describe(seen: os.stat_result) -> str:
    return f"{seen.st_mode} {seen.st_size} {seen.st_mtime_ns} {seen.st_ctime_ns} {seen.st_ino} {seen.st_dev}"


def digest_tree(path: str) -> str:
    """Return the digest of a directory's archive, without storing the archive."""
    sink = _Hashed()
    write_tree(path, cast("IO[bytes]", sink))
    return f"sha256:{sink.digest.hexdigest()}"


def pack_tree(path: str, archive: Path) -> None:
    """Create a directory's archive."""
    with archive.open("wb") as target:
        write_tree(path, target)


def write_tree(path: str, target: IO[bytes]) -> None:
    """Write a directory as a reproducible archive: the directory itself or, if `path` ends in a slash, its content."""
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
    """A file object that keeps only the digest of what is written."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return len(data)
