"""What sending and fetching share: a file arrives in pieces under another name, and gets its own when it is whole.

That other name carries the content's digest, so that a second try goes on where the first one stopped, and never on top
of something else. Small files travel many at a time. The far side needs coreutils, and `find` for a directory.
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

SMALL = 1 << 18  # files up to this size travel together
PART = ".sublet-part-"
CHECKING = 3600  # seconds that a far side has to read through a large file
_TOGETHER = 1 << 22  # bytes that travel in one exec
_MANY = 1000  # files that travel in one exec
_NAMES = 1 << 18  # bytes of names in one command: a system takes 2 MiB of words
_SMALLEST, _LARGEST = 1 << 18, 1 << 25  # bytes of a piece
_FULL = ("No space left", "quota exceeded")

_SIZES = """stat -L --printf '%s %n\\0' -- "$@" 2>/dev/null; exit 0"""
_DIGEST = 'command -v sha256sum >/dev/null && head -c "$1" -- "$2" | sha256sum; exit 0'
_DIGESTS = 'command -v sha256sum >/dev/null && sha256sum -- "$@"; exit 0'


@dataclass(frozen=True)
class TransferEntry:
    """One file of a transfer: where it is here and there, and what it is."""

    here: Path
    there: str
    size: int
    mode: int
    changed: str = ""  # when, as the far side tells it


class Counter:
    """Tells how far a transfer is."""

    def __init__(self, progress: Progress, entries: Iterable[TransferEntry]) -> None:
        """Count up to all of the entries' bytes."""
        self._progress, self._total, self._done = progress, sum(entry.size for entry in entries), 0

    def add(self, size: int) -> None:
        """So many bytes more have arrived."""
        self._done += size
        self._progress(self._done, self._total)


class TransferPace:
    """How large the next piece is: about as much as goes through in a second or two."""

    def __init__(self) -> None:
        """Begin with little, so that a slow line gets through."""
        self.size = _SMALLEST
        self._since = time.monotonic()

    def next(self) -> None:
        """A piece went through."""
        took, self._since = time.monotonic() - self._since, time.monotonic()
        if took < 1:
            self.size = min(self.size * 4, _LARGEST)
        elif took > 4:
            self.size = max(self.size // 2, _SMALLEST)


def groups(entries: Iterable[TransferEntry], most: int = _TOGETHER) -> Iterator[list[TransferEntry]]:
    """All of them in order, as many together as can be named, and as `most` bytes allow, in one exec."""
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
    """Those that travel together."""
    return (entry for entry in entries if entry.size <= SMALL)


def part_name(name: str, digest: str) -> str:
    """The name, in the directory of `name`, of what has arrived of such a content so far."""
    tag = hashlib.sha256(os.fsencode(f"{digest} {PurePosixPath(name).name}")).hexdigest()[:20]
    return str(PurePosixPath(name).with_name(PART + tag))


def digest(path: Path, size: int) -> str:
    """The SHA-256 of a file's first bytes, in hexadecimal."""
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0 and (piece := file.read(min(size, 1 << 20))):
            hashed.update(piece)
            size -= len(piece)
    return hashed.hexdigest()


def to_sizes(names: Sequence[str]) -> Command[dict[str, int]]:
    """The sizes of those of the files that are there."""

    def read(outcome: Outcome) -> dict[str, int]:
        lines = (line.partition(" ") for line in outcome.text.split("\0") if line)
        return {name: int(size) for size, _, name in lines}

    return Command(("sh", "-c", _SIZES, "sh", *names), read)


def to_digest(entry: TransferEntry) -> Command[str | None]:
    """The digest of as much of a file there as its size says; None where there is no sha256sum."""
    words = ("sh", "-c", _DIGEST, "sh", str(entry.size), entry.there)
    return Command(words, lambda outcome: outcome.text[:64] or None, seconds=CHECKING)


def to_digests(entries: Sequence[TransferEntry]) -> Command[dict[str, str]]:
    """The digests of whole files there, by name; empty where there is no sha256sum, or one of them can't be read."""

    def read(outcome: Outcome) -> dict[str, str]:
        lines = [line.lstrip("\\")[:64] for line in outcome.text.splitlines()]
        return dict(zip((entry.there for entry in entries), lines, strict=True)) if len(lines) == len(entries) else {}

    return Command(("sh", "-c", _DIGESTS, "sh", *(entry.there for entry in entries)), read, seconds=CHECKING)


async def ask(reach: Reach, script: str, *words: str, stdin: bytes = b"", seconds: int = 60) -> Outcome:
    """What a far `sh` answers to a script with words; PlatformRefused, or DiskFull, with its complaint."""
    outcome = await reach.run(Command(("sh", "-c", script, "sh", *words), as_is, stdin, seconds))
    if outcome.code:
        raise complaint(reach.name, outcome)
    return outcome


def complaint(platform: str, outcome: Outcome) -> PlatformRefused:
    """The error for a command that failed."""
    why = outcome.complaint
    return (DiskFull if any(word in why for word in _FULL) else PlatformRefused)(platform=platform, why=why)


def unwritable(path: Path, error: OSError) -> PlatformRefused:
    """The error for a file that can't be read or written here."""
    kind = DiskFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else PlatformRefused
    hint = "Free some space, or choose another place."
    return kind(f"{path} can't be used here: {error.strerror or error}.", hint=hint)
