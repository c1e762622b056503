"""Digests of the files that jobs share: each file is read once, and again whenever it may have changed."""

from __future__ import annotations

import asyncio
import os
import stat
import tarfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from sublet.annexes.input_trees import NotShareable, describe_tree, digest_tree, list_tree
from sublet.kernel.log import log
from sublet.platforms.batch.kept import digest_of

RESTLESS = 5  # changes, while jobs name a directory, after which it is left to HTCondor
STILL = 1.0  # seconds for which a file must be unchanged before it is read, since it may still be being written


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What the file system reports about a file; it differs if the content differs."""

    size: int
    modified: int  # in ns
    changed: int  # in ns: when its content, name or mode changed; no program can set it back
    inode: int
    device: int
    tree: str = ""  # for a directory: a digest of the fingerprints of everything in it

    @property
    def changed_at(self) -> float:
        """When the file changed, in seconds since the epoch."""
        return max(self.modified, self.changed) / 1e9


def read_fingerprint(path: str) -> Fingerprint | None:
    """Return the fingerprint of a regular file or a directory, or None."""
    try:
        seen = os.stat(path)
        if stat.S_ISDIR(seen.st_mode):
            return _read_tree(path, seen)
    except (OSError, ValueError, NotShareable):
        return None
    if not stat.S_ISREG(seen.st_mode):
        return None
    return Fingerprint(seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino, seen.st_dev)


def _read_tree(path: str, seen: os.stat_result) -> Fingerprint:
    """Return a directory's fingerprint: with the total size of its files, and the latest of their times."""
    entries = list_tree(path)
    every = [seen, *(entry.seen for entry in entries), *(entry.link for entry in entries if entry.link)]
    size = sum(entry.seen.st_size for entry in entries if stat.S_ISREG(entry.seen.st_mode))
    modified, changed = max(each.st_mtime_ns for each in every), max(each.st_ctime_ns for each in every)
    return Fingerprint(size, modified, changed, seen.st_ino, seen.st_dev, describe_tree(path, entries))


@dataclass
class _Reading:
    fingerprint: Fingerprint
    since: float  # when this fingerprint was first seen
    digest: str = ""
    task: asyncio.Task[None] | None = None


class InputFiles:
    """Digests of files by fingerprint, computed in the background so that no one waits for a large file."""

    def __init__(self, still: float = STILL) -> None:
        """Start with no digests; `still` is the time for which a file must be unchanged."""
        self._still, self._readings, self._changes = still, dict[str, _Reading](), Counter[str]()

    def digest(self, path: str, fingerprint: Fingerprint) -> str | None:
        """Return the digest of a file's current content, or None while the file is being written or read."""
        reading = self._readings.get(path)
        if reading is None or reading.fingerprint != fingerprint:
            self._changes[path] += 1
            reading = self._readings[path] = _Reading(fingerprint, time.monotonic())
        if not reading.digest and reading.task is None and self._is_still(reading):
            reading.task = asyncio.create_task(self._read(path, reading), name="input file")
        return reading.digest or None

    def is_restless(self, path: str, fingerprint: Fingerprint) -> bool:
        """Whether a directory changes all the time, as when jobs write into it; then no copy of it is made."""
        return bool(fingerprint.tree) and self._changes[path] > RESTLESS

    def forget_all_but(self, paths: set[str]) -> None:
        """Forget the files that no job names any more."""
        for path in self._readings.keys() - paths:
            del self._readings[path], self._changes[path]

    def _is_still(self, reading: _Reading) -> bool:
        seen_for, age = time.monotonic() - reading.since, time.time() - reading.fingerprint.changed_at
        return seen_for >= self._still or age >= self._still

    async def _read(self, path: str, reading: _Reading) -> None:
        """Compute a file's digest; it counts only if the file didn't change meanwhile."""
        try:
            digest = await asyncio.to_thread(_digest, path, reading.fingerprint)
            if await asyncio.to_thread(read_fingerprint, path) == reading.fingerprint:
                reading.digest = digest
        except (OSError, NotShareable, tarfile.TarError) as error:
            log.warning("input.not-read", file=Path(path).name, why=str(error))
            reading.since = time.monotonic()
        finally:
            reading.task = None


def _digest(path: str, fingerprint: Fingerprint) -> str:
    return digest_tree(path) if fingerprint.tree else digest_of(Path(path))
