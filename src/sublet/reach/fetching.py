"""Transfer of files and directories from a remote machine to this one."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.reach.files import (
    PART,
    SMALL,
    Counter,
    TransferEntry,
    TransferPace,
    ask,
    digest,
    groups,
    part_name,
    small,
    to_digest,
    to_digests,
    unwritable,
)
from sublet.reach.port import Command, Progress, Reach, as_is

# A link to a file is sent as the file; a link to a directory, or a broken link, is skipped.
_LIST = f"""[ -d "$1" ] || {{ exec <"$1" || exit 1; stat -L --printf '%F|%s|%a|%Y|\\0' -- "$1"; exit; }}
cd -- "$1" && exec find . -name '{PART}*' -o \\( -type d -o -type f -o -type l -exec test -f {{}} \\; \\) \
-exec stat -L --printf '%F|%s|%a|%Y|%n\\0' -- {{}} +"""


async def fetch(reach: Reach, source: str, target: Path, progress: Progress) -> None:
    """Fetch a file or directory; links to files arrive as files, and links to directories are skipped."""
    answer = await ask(reach, _LIST, source)
    directories, entries = _listing(reach.name, answer.text, source, target)
    await asyncio.to_thread(_make, directories)
    counter = Counter(progress, entries)
    missing = await _missing(reach, entries, counter)
    for group in groups(small(missing)):
        await _fetch_group(reach, group, counter)
    for entry in missing:
        if entry.size > SMALL:
            await _fetch_large(reach, entry, counter)


def _listing(platform: str, answer: str, source: str, target: Path) -> tuple[list[Path], list[TransferEntry]]:
    """Return the directories to create here and the files to fetch."""
    directories: list[Path] = [target.parent]
    entries: list[TransferEntry] = []
    for line in answer.split("\0")[:-1]:
        kind, size, mode, changed, name = line.split("|", 4)
        if ".." in PurePosixPath(name).parts or PurePosixPath(name).is_absolute():
            raise PlatformRefused(f"{platform} named a file outside of what was asked for: {name!r}.")
        if kind == "directory":
            directories.append(target / name)
        elif kind.startswith("regular"):
            there = str(PurePosixPath(source) / name) if name else source
            entries.append(
                TransferEntry(target / name if name else target, there, int(size), int(mode, 8) & 0o777, changed)
            )
    return directories, entries


def _make(directories: Sequence[Path]) -> None:
    for directory in directories:
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(directory, error) from error


async def _missing(reach: Reach, entries: Sequence[TransferEntry], counter: Counter) -> list[TransferEntry]:
    """Return the entries that aren't here yet with the same content."""
    alike = [entry for entry in entries if entry.here.is_file() and entry.here.stat().st_size == entry.size]
    same: set[str] = set()
    for chunk in groups(alike, sys.maxsize):
        digests = await reach.run(to_digests(chunk))
        for entry in chunk:
            if entry.there in digests and digests[entry.there] == await asyncio.to_thread(
                digest, entry.here, entry.size
            ):
                same.add(entry.there)
                counter.add(entry.size)
    return [entry for entry in entries if entry.there not in same]


async def _fetch_group(reach: Reach, group: Sequence[TransferEntry], counter: Counter) -> None:
    words = ("cat", "--", *(entry.there for entry in group))
    outcome, digests = await reach.run_all([Command(words, as_is), to_digests(group)])
    contents, at = [], 0
    for entry in group:
        contents.append(outcome.stdout[at : at + entry.size])
        at += entry.size
    whole = outcome.code == 0 and at == len(outcome.stdout)
    for entry, content in zip(group, contents, strict=True):
        if whole and digests.get(entry.there) in (None, hashlib.sha256(content).hexdigest()):
            await asyncio.to_thread(_write, entry, content)
            counter.add(entry.size)
        else:  # a file can't be read or has changed: fetch each one alone, to find out which
            await _fetch_large(reach, entry, counter)


async def _fetch_large(reach: Reach, entry: TransferEntry, counter: Counter) -> None:
    known = await reach.run(to_digest(entry))
    part = Path(part_name(str(entry.here), known or f"{entry.size} {entry.changed}"))
    at = await asyncio.to_thread(_count_arrived, part, entry)
    counter.add(at)
    pace = TransferPace()
    while at < entry.size:
        piece = await reach.read(entry.there, at, min(pace.size, entry.size - at))
        if not piece:
            raise PlatformUnreachable(platform=reach.name, why=f"{entry.there} became shorter while it was fetched")
        await asyncio.to_thread(_append, part, at, piece)
        at += len(piece)
        pace.next()
        counter.add(len(piece))
    await asyncio.to_thread(_finish, reach.name, entry, part, known)


def _count_arrived(part: Path, entry: TransferEntry) -> int:
    size = part.stat().st_size if part.is_file() else 0
    return size if size <= entry.size else 0


def _write(entry: TransferEntry, content: bytes) -> None:
    part = Path(part_name(str(entry.here), "small"))
    _append(part, 0, content)
    _rename(entry, part)


def _append(part: Path, at: int, piece: bytes) -> None:
    try:
        with part.open("r+b" if at else "wb") as file:
            file.truncate(at)
            file.seek(at)
            file.write(piece)
    except OSError as error:
        raise unwritable(part, error) from error


def _finish(platform: str, entry: TransferEntry, part: Path, known: str | None) -> None:
    if entry.size == 0:
        _append(part, 0, b"")
    if known is not None and digest(part, entry.size) != known:
        part.unlink()
        raise PlatformUnreachable(platform=platform, why=f"{entry.there} changed while it was fetched")
    _rename(entry, part)


def _rename(entry: TransferEntry, part: Path) -> None:
    try:
        part.chmod(entry.mode | 0o600)  # so that the person who fetched it can read and remove it
        part.replace(entry.here)
    except OSError as error:
        raise unwritable(entry.here, error) from error
