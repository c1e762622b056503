"""Brings data known only by a name: resolved to addresses, which other movers try one after another."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.executables import Movers
from sublet.data.racing import SilentHosts, Source, race
from sublet.kernel.errors import DataNotThere
from sublet.movers.arrival import missing, refuse, without_secrets
from sublet.movers.port import Mover, Progress, ResolvedFile, Resolves
from sublet.movers.trees import Tally, safe_path

AT_ONCE = 8  # files that are brought in parallel
MOMENT = 4.0  # seconds that a request waits for a name to be resolved
INCOMING = ".incoming"  # in the data's directory, while its files come
MOST_NAMED = 10  # failed addresses that a reason lists
OWN = ("session", "upload", "app", "ssh")  # a person's own data here or on systems: a catalogue may not point at it


@dataclass(frozen=True)
class BringableFile:
    """A file, or the whole data, with the movers that can bring it, best first."""

    path: str  # below the data's directory; empty: the files keep their own names
    sources: Sequence[tuple[Mover, Data]]
    refused: Sequence[str] = ()  # the addresses that no mover here can bring, and why


async def find_files(movers: Movers, resolver: Resolves, data: Data, *, guest: bool = False) -> list[BringableFile]:
    """Resolve a name to files and the movers that bring them; raise DataNotThere if one can't be brought."""
    files = _choose_all(movers, data, await resolver.resolve(data), guest=guest)
    if not files:
        raise missing(data, "nothing has this name, or it has no files")
    for file in files:
        if not file.sources:
            raise missing(
                data, _join(f"{file.path or 'it'} has no address that data can be fetched from", file.refused)
            )
    return files


def _choose_all(movers: Movers, data: Data, files: Sequence[ResolvedFile], *, guest: bool) -> list[BringableFile]:
    """Choose movers for all files; the request's size and checksum override the catalogue's, for a single file only."""
    promised = data if len(files) == 1 else replace(data, size=None, checksum="")
    return [_choose_sources(movers, promised, file, guest=guest) for file in files]


def _choose_sources(movers: Movers, data: Data, file: ResolvedFile, *, guest: bool) -> BringableFile:
    sources: list[tuple[Mover, Data]] = []
    refused: list[str] = []
    for replica in file.replicas:
        mover = movers.choose(replica, guest=guest)
        scheme = replica.location.partition(":")[0].lower()
        if isinstance(mover, Reason) or scheme in OWN:
            refused.append(f"{without_secrets(replica.location)}: nothing here brings {scheme}: addresses")
        elif isinstance(mover, Resolves):
            refused.append(f"{without_secrets(replica.location)}: this is a name, too, and not an address")
        elif reasons := mover.check(replica):
            refused.append(f"{without_secrets(replica.location)}: {reasons[0].message}")
        else:
            size = replica.size if data.size is None else data.size
            merged = replace(replica, name=data.name, size=size, checksum=data.checksum or replica.checksum)
            sources.append((mover, merged))
    return BringableFile(file.path, sources, refused)


def _join(what: str, reasons: Sequence[str]) -> str:
    named = "; ".join(reason.rstrip(".") for reason in reasons[:MOST_NAMED])
    more = f"; and {len(reasons) - MOST_NAMED} more" if len(reasons) > MOST_NAMED else ""
    return f"{what}: {named}{more}" if named else what


async def look_up(
    movers: Movers, resolver: Resolves, data: Data, *, guest: bool = False
) -> tuple[int | None, list[Reason]]:
    """Return the size of what a name stands for if it is known quickly, or the reason why no address can be used.

    Other errors are reported when the data is brought.
    """
    with suppress(TimeoutError, DataNotThere):
        async with asyncio.timeout(MOMENT):
            files = _choose_all(movers, data, await resolver.resolve(data), guest=guest)
            for file in files:
                if not file.sources:
                    why = _join("It has no address that data can be fetched from", file.refused)
                    return None, [refuse(data, f"{why}.", nearest="an https: address of the same data")]
            return await _measure(files), []
    return None, []


async def _measure(files: Sequence[BringableFile]) -> int | None:
    """Return the total size; a single file that no catalogue knows the size of is measured at its address."""
    sizes = [file.sources[0][1].size for file in files]
    if len(files) == 1 and sizes[0] is None:
        mover, replica = files[0].sources[0]
        return await mover.measure(replica)
    known = [size for size in sizes if size is not None]
    return sum(known) if known and len(known) == len(sizes) else None


async def bring_files(data: Data, files: Sequence[BringableFile], target: Path, progress: Progress) -> None:
    """Bring all files into the directory.

    Raise DataNotThere with every address tried for the first file that failed.
    """
    if data.checksum and len(files) > 1:
        raise missing(data, "it has several files, and a checksum is of one")
    sizes = [file.sources[0][1].size for file in files]
    tally = Tally(sum(size or 0 for size in sizes), progress)
    turns, hosts = asyncio.Semaphore(AT_ONCE), SilentHosts()

    async def bring(file: BringableFile) -> None:
        async with turns:
            await _bring_file(data, file, target, tally.of(file.path), hosts)

    try:
        async with asyncio.TaskGroup() as group:
            for file in files:
                group.create_task(bring(file))
    except ExceptionGroup as several:
        raise several.exceptions[0] from several
    await asyncio.to_thread(shutil.rmtree, target / INCOMING, ignore_errors=True)


async def _bring_file(data: Data, file: BringableFile, target: Path, progress: Progress, hosts: SilentHosts) -> None:
    """Bring one file from the first address that works; a partial file is resumed from the same address only."""
    place = target / safe_path(data, file.path) if file.path else None
    if place and place.exists():
        return  # an earlier attempt completed it

    async def bring(source: Source, progress: Progress) -> str:
        mover, replica = source
        try:
            await mover.bring(replica, await _make_room(target, file, replica), progress)
        except DataNotThere as error:
            return f"{without_secrets(replica.location)}: {error.values.get('why', error.clause)}"
        return ""

    failures: list[str] = []
    ordered = await hosts.order(file.sources)
    for heat in [*([source] for source in ordered.prompt), ordered.silent]:
        winner, failed = await race(heat, bring, progress)
        failures += failed
        if winner is None:
            continue
        room = await _make_room(target, file, winner[1])
        try:
            await asyncio.to_thread(_put_in_place, winner[1], room, place or target, is_file=place is not None)
        except DataNotThere as error:
            failures.append(f"{without_secrets(winner[1].location)}: {error.values.get('why', error.clause)}")
        else:
            return
    raise missing(data, _join(_describe_failure(file), [*failures, *file.refused]))


async def _make_room(target: Path, file: BringableFile, replica: Data) -> Path:
    """Make and return the directory that a file from one address arrives in."""
    room = target / INCOMING / _short_hash(f"{file.path}\0{replica.location}")
    await asyncio.to_thread(room.mkdir, parents=True, exist_ok=True)
    return room


def _describe_failure(file: BringableFile) -> str:
    what = file.path or "it"
    return f"{what} came from none of its {len(file.sources)} addresses" if len(file.sources) > 1 else what


def _put_in_place(replica: Data, room: Path, place: Path, *, is_file: bool) -> None:
    """Move what came to its final name, last of all, so that anything with that name is complete."""
    entries = sorted(room.iterdir())
    if not is_file:
        for entry in entries:
            if (place / entry.name).is_dir():
                shutil.rmtree(place / entry.name)  # left by an interrupted attempt
            entry.rename(place / entry.name)
        return
    if len(entries) != 1 or not entries[0].is_file():
        raise missing(replica, "a file was expected, and something else is there")
    place.parent.mkdir(parents=True, exist_ok=True)
    entries[0].rename(place)


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
