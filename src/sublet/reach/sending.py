"""Transfer of files and directories from this machine to a remote one."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.reach.files import (
    CHECKING,
    PART,
    SMALL,
    Counter,
    TransferEntry,
    TransferPace,
    ask,
    complaint,
    digest,
    groups,
    part_name,
    small,
    to_digests,
    to_sizes,
    unwritable,
)
from sublet.reach.port import Command, Progress, Reach, as_is

# A line follows each file: if the line is missing, the file was cut short, and no extra process is needed to notice.
_PUT = """while [ $# -gt 0 ]; do
    umask "$2"
    head -c "$1" >"$4" && read -r whole || exit
    [ -z "$3" ] || chmod -- "$3" "$4" || exit
    mv -f -- "$4" "$5" || exit
    shift 5
done"""
_APPEND = """[ "$2" -gt 0 ] || : >"$1" || exit
[ "$(wc -c <"$1")" -eq "$2" ] || exit 75
cat >>"$1\""""
_WHOLE = """[ -e "$1" ] || : >"$1" || exit
if command -v sha256sum >/dev/null; then
    [ "$(sha256sum <"$1")" = "$2  -" ] || { rm -f -- "$1"; exit 75; }
fi
chmod -- "$3" "$1" && mv -f -- "$1" "$4\""""
_BUSY = 75  # exit code of the scripts above when the partial file isn't in the expected state


async def send(reach: Reach, source: Path, target: str, progress: Progress) -> None:
    """Send a file or directory; links to files arrive as files, and links to directories are skipped."""
    directories, entries = await asyncio.to_thread(_tree, source, target)
    for places in groups(TransferEntry(source, name, 0, 0) for name in directories):
        await ask(reach, 'mkdir -p -- "$@"', *(place.there for place in places))
    counter = Counter(progress, entries)
    missing = await _missing(reach, entries, counter)
    for group in groups(small(missing)):
        await _send_group(reach, group, counter)
    for entry in missing:
        if entry.size > SMALL:
            await _send_large(reach, entry, counter)


def _tree(source: Path, target: str) -> tuple[list[str], list[TransferEntry]]:
    """Return the directories to create on the remote machine, and the files to send."""
    try:
        if not source.is_dir():
            parent = str(PurePosixPath(target).parent)
            return [parent], [_entry(source, target)]
        directories, entries = [target], []
        for at, below, names in os.walk(source):
            there = PurePosixPath(target) / Path(at).relative_to(source).as_posix()
            directories += [str(there / name) for name in below if not Path(at, name).is_symlink()]
            files = [Path(at, name) for name in sorted(names) if not name.startswith(PART)]
            entries += [_entry(path, str(there / path.name)) for path in files if path.is_file()]
        return directories, entries
    except OSError as error:
        raise unwritable(source, error) from error


def _entry(path: Path, there: str) -> TransferEntry:
    status = path.stat()
    return TransferEntry(path, there, status.st_size, status.st_mode & 0o777)


async def _missing(reach: Reach, entries: Sequence[TransferEntry], counter: Counter) -> list[TransferEntry]:
    """Return the entries whose content isn't on the remote machine yet; count the others as done."""
    missing = []
    for chunk in groups(entries, sys.maxsize):
        sizes = await reach.run(to_sizes([entry.there for entry in chunk]))
        alike = [entry for entry in chunk if sizes.get(entry.there) == entry.size]
        digests = await reach.run(to_digests(alike)) if alike else {}
        for entry in chunk:
            if entry.there in digests and digests[entry.there] == await asyncio.to_thread(_digest, entry):
                counter.add(entry.size)
            else:
                missing.append(entry)
    return missing


async def _send_group(reach: Reach, group: Sequence[TransferEntry], counter: Counter) -> None:
    contents = await asyncio.to_thread(lambda: [_piece(entry, 0, SMALL) for entry in group])
    words: list[str] = []
    for entry, content in zip(group, contents, strict=True):
        mask, mode = f"{0o666 & ~entry.mode:o}", f"{entry.mode:o}" if entry.mode & 0o111 else ""
        words += [str(len(content)), mask, mode, part_name(entry.there, "small"), entry.there]
    put = Command(("sh", "-c", _PUT, "sh", *words), as_is, b"".join(content + b"\n" for content in contents))
    outcome, digests = await reach.run_all([put, to_digests(group)])
    if outcome.code:
        raise complaint(reach.name, outcome)
    for entry, content in zip(group, contents, strict=True):
        if entry.there in digests and digests[entry.there] != hashlib.sha256(content).hexdigest():
            raise PlatformUnreachable(platform=reach.name, why=f"{entry.there} did not arrive whole")
        counter.add(entry.size)


async def _send_large(reach: Reach, entry: TransferEntry, counter: Counter) -> None:
    digest = await asyncio.to_thread(_digest, entry)
    part = part_name(entry.there, digest)
    at = (await reach.run(to_sizes([part]))).get(part, 0)
    at = at if at <= entry.size else 0
    counter.add(at)
    pace = TransferPace()
    while at < entry.size:
        piece = await asyncio.to_thread(_piece, entry, at, min(pace.size, entry.size - at))
        if not piece:
            raise PlatformRefused(
                f"{entry.here} became shorter while it was sent.", hint="Send it when it is complete."
            )
        await _step(reach, entry, _APPEND, part, str(at), stdin=piece)
        at += len(piece)
        pace.next()
        counter.add(len(piece))
    await _step(reach, entry, _WHOLE, part, digest, f"{entry.mode:o}", entry.there)


async def _step(reach: Reach, entry: TransferEntry, script: str, *words: str, stdin: bytes = b"") -> None:
    seconds = 60 if stdin else CHECKING
    outcome = await reach.run(Command(("sh", "-c", script, "sh", *words), as_is, stdin, seconds))
    if outcome.code == _BUSY:
        why = f"what is there of {entry.there} is not what was sent: something else may be sending it too"
        raise PlatformUnreachable(platform=reach.name, why=why)
    if outcome.code:
        raise complaint(reach.name, outcome)


def _piece(entry: TransferEntry, offset: int, size: int) -> bytes:
    try:
        with entry.here.open("rb") as file:
            file.seek(offset)
            return file.read(size)
    except OSError as error:
        raise unwritable(entry.here, error) from error


def _digest(entry: TransferEntry) -> str:
    try:
        return digest(entry.here, entry.size)
    except OSError as error:
        raise unwritable(entry.here, error) from error
