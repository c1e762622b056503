"""Shared parts of sending and fetching: a file arrives in pieces under a temporary name, and is renamed when complete.

The temporary name carries the content's digest, so a second attempt resumes where the first stopped and never appends
to another file. Small files travel many at a time. The remote machine needs coreutils, and `find` for a directory.
"""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from sublet.kernel.errors import DiskFull, PlatformRefused
from sublet.reach.port import Command, Outcome, Progress, Reach, as_is

SMALL = 1 << 18  # bytes up to which files are sent together
PART = ".sublet-part-"
CHECKING = 3600  # seconds that the remote machine has to read through a large file
_TOGETHER = 1 << 22  # bytes sent in one exec
_MANY = 1000  # files sent in one exec
_NAMES = 1 << 18  # bytes of names in one command; Linux allows 2 MiB of arguments
_SMALLEST, _LARGEST = 1 << 18, 1 << 25  # bytes of a piece
_FULL = ("No space left", "quota exceeded")

_SIZES = """stat -L --printf '%s %n\\0' -- "$@" 2>/dev/null; exit 0"""
_DIGEST = 'command -v sha256sum >/dev/null && head -c "$1" -- "$2" | sha256sum; exit 0'
_DIGESTS = 'command -v sha256sum >/dev/null && sha256sum -- "$@"; exit 0'


@dataclass(frozen=True)
class TransferEntry:
    """One file of a transfer: its paths on both sides, size and mode."""

    here: Path
    there: str
    size: int
    mode: int
    changed: str = ""  # its time of modification, as the remote machine prints it


class Counter:
    """Reports the progress of a transfer."""

    def __init__(self, progress: Progress, entries: Iterable[TransferEntry]) -> None:
        """Count up to the total size of the entries."""
        self._progress, self._total, self._done = progress, sum(entry.size for entry in entries), 0

    def add(self, size: int) -> None:
        """Report that `size` more bytes have arrived."""
        self._done += size
        self._progress(self._done, self._total)


class TransferPace:
    """The size of the next piece: about as much as is transferred in a second or two."""

    def __init__(self) -> None:
        """Start with a small piece, in case the connection is slow."""
        self.size = _SMALLEST
        self._since = time.monotonic()

    def next(self) -> None:
        """Adjust the size to the time that the last piece took."""
        took, self._since = time.monotonic() - self._since, time.monotonic()
        if took < 1:
            self.size = min(self.size * 4, _LARGEST)
        elif took > 4:
            self.size = max(self.size // 2, _SMALLEST)


def groups(entries: Iterable[TransferEntry], most: int = _TOGETHER) -> Iterator[list[TransferEntry]]:
    """Split the entries, in order, into groups whose names and contents (`most` bytes) fit into one exec."""
    group: list[TransferEntry] = []
    size = names = 0
    for entry in entries:
        length = len(os.fsencode(entry.there))
        if group and (len(group) == _MANY or size + entry.size > most or names + length > _NAMES):
            yield group
            group, size, names = [], 0, 0
        group.append(entry)
        size, names = size + entry.size, names + length
    if group:
        yield group


def small(entries: Iterable[TransferEntry]) -> Iterator[TransferEntry]:
    """Return the entries that are small enough to be sent together."""
    return (entry for entry in entries if entry.size <= SMALL)


def part_name(name: str, digest: str) -> str:
    """Return the temporary name, in the directory of `name`, of a partial file with this digest."""
    tag = hashlib.sha256(os.fsencode(f"{digest} {PurePosixPath(name).name}")).hexdigest()[:20]
    return str(PurePosixPath(name).with_name(PART + tag))


def digest(path: Path, size: int) -> str:
    """Return the SHA-256 of a file's first `size` bytes, in hexadecimal."""
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0 and (piece := file.read(min(size, 1 << 20))):
            hashed.update(piece)
            size -= len(piece)
    return hashed.hexdigest()


def to_sizes(names: Sequence[str]) -> Command[dict[str, int]]:
    """Build the command that returns the sizes of the files that exist, by name."""

    def read(outcome: Outcome) -> dict[str, int]:
        lines = (line.partition(" ") for line in outcome.text.split("\0") if line)
        return {name: int(size) for size, _, name in lines}

    return Command(("sh", "-c", _SIZES, "sh", *names), read)


def to_digest(entry: TransferEntry) -> Command[str | None]:
    """Build the command that returns the SHA-256 of a remote file, up to its known size; None without sha256sum."""
    words = ("sh", "-c", _DIGEST, "sh", str(entry.size), entry.there)
    return Command(words, lambda outcome: outcome.text[:64] or None, seconds=CHECKING)


def to_digests(entries: Sequence[TransferEntry]) -> Command[dict[str, str]]:
    """Build the command that returns remote files' SHA-256 by name; empty if a file or sha256sum is missing."""

    def read(outcome: Outcome) -> dict[str, str]:
        lines = [line.lstrip("\\")[:64] for line in outcome.text.splitlines()]
        return dict(zip((entry.there for entry in entries), lines, strict=True)) if len(lines) == len(entries) else {}

    return Command(("sh", "-c", _DIGESTS, "sh", *(entry.there for entry in entries)), read, seconds=CHECKING)


async def ask(reach: Reach, script: str, *words: str, stdin: bytes = b"", seconds: int = 60) -> Outcome:
    """Run a script with arguments in a remote `sh`; raise PlatformRefused or DiskFull with its message if it fails."""
    outcome = await reach.run(Command(("sh", "-c", script, "sh", *words), as_is, stdin, seconds))
    if outcome.code:
        raise complaint(reach.name, outcome)
    return outcome


def complaint(platform: str, outcome: Outcome) -> PlatformRefused:
    """Return the error for a command that failed."""
    why = outcome.complaint
    return (DiskFull if any(word in why for word in _FULL) else PlatformRefused)(platform=platform, why=why)


def unwritable(path: Path, error: OSError) -> PlatformRefused:
    """Return the error for a local file that can't be read or written."""
    kind = DiskFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else PlatformRefused
    hint = "Free some space, or choose another place."
    return kind(f"{path} can't be used here: {error.strerror or error}.", hint=hint)
