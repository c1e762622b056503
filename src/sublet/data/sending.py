"""Sends a session's results to an address by the shortest road: by a transfer, by the system itself, or through here.

What was sent whole is remembered, so that sending that was broken off goes on with the next file.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import quote

from sublet.booking.model.request import Data
from sublet.data.executables import Movers
from sublet.data.sent_tasks import SentTasks, send_by_service
from sublet.data.write_back import look_at_source
from sublet.kernel.faults import point
from sublet.kernel.log import log
from sublet.kernel.texts import count_text
from sublet.movers.arrival import without_secrets
from sublet.movers.port import SIMPLE, Content, Progress, Pushes, PutsByAddress, TransferService
from sublet.platforms.caching import FilePut, LiesInCollection, NoWay, SendsFiles
from sublet.platforms.port import Platform, ResultFile

LEDGER = "files"  # of a session, beside its transfers: a line for each file that was sent whole
TellRoad = Callable[[str], Progress]  # what is being sent, in words → how far that is


@dataclass(frozen=True, slots=True)
class SentFile:
    """A result that was sent, and its address now."""

    path: str
    size: int
    to: str
    road: str = ""  # who sent it, in words; empty: it went through the service
    was_there: bool = False  # it was sent before, and is there still


@dataclass(frozen=True)
class Shipment:
    """Results of a session that go to one address."""

    session: str
    platform: Platform
    mover: Pushes
    files: Sequence[tuple[ResultFile, str]]  # each with its path below the address
    to: str  # of a folder, if it ends in /

    def address(self, place: str) -> str:
        """Where a file goes."""
        return f"{self.to}{quote(place)}" if self.to.endswith("/") else self.to


@dataclass(frozen=True)
class SentLedger:
    """Which files of a session were sent whole, and where to; addresses may hold secrets, so their digests are kept."""

    home: Path
    session: str

    @property
    def _file(self) -> Path:
        return SentTasks(self.home, self.session).folder / LEDGER

    def read(self) -> set[str]:
        """All that was noted."""
        try:
            return set(self._file.read_text().splitlines())
        except FileNotFoundError:
            return set()

    def note(self, file: ResultFile, address: str) -> None:
        """It is there."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._file.open("a") as lines:
            lines.write(f"{name_sent(file, address)}\n")


def describe_sent(count: int, to: str, road: str) -> str:
    """So many files went there, and by whom."""
    words = f"{count_text(count, 'file')} to {without_secrets(to)}"
    return f"{words}, {road}" if road else words


def name_sent(file: ResultFile, address: str) -> str:
    """This version of a file, at an address."""
    version = f"{file.path}\0{file.size}\0{file.modified.timestamp()}\0{address}"
    return hashlib.sha256(version.encode(errors="surrogateescape")).hexdigest()


async def send_shipment(
    shipment: Shipment, movers: Movers, home: Path, tell: TellRoad, *, guest: bool = False
) -> AsyncIterator[SentFile]:
    """Send all files that are not there yet, each told as it is there; raises DataNotSent."""
    ledger = SentLedger(home, shipment.session)
    left, there = await _leave_out_sent(shipment, movers, ledger, guest=guest)
    for file, place in there:
        yield SentFile(file.path, file.size, without_secrets(shipment.address(place)), was_there=True)
    if not left:
        return
    shipment = replace(shipment, files=left)
    if road := await _send_past_here(shipment, home, tell):
        for file, place in left:
            await asyncio.to_thread(ledger.note, file, shipment.address(place))
            yield SentFile(file.path, file.size, without_secrets(shipment.address(place)), road)
        return
    for number, (file, place) in enumerate(left, 1):
        progress = tell(f"sending {file.path} ({number} of {len(left)}) to {without_secrets(shipment.to)}")
        content = Content(place, file.size, partial(shipment.platform.read, shipment.session, file.path))
        address = await shipment.mover.push(content, shipment.to, progress)
        await asyncio.to_thread(ledger.note, file, shipment.address(place))
        point("send.between")
        yield SentFile(file.path, file.size, without_secrets(address))


Files = list[tuple[ResultFile, str]]


async def _leave_out_sent(
    shipment: Shipment, movers: Movers, ledger: SentLedger, *, guest: bool
) -> tuple[Files, Files]:
    """The files that are to be sent, and those that were, and that are there still, as large as they were."""
    noted = await asyncio.to_thread(ledger.read)
    known = {place for file, place in shipment.files if noted and name_sent(file, shipment.address(place)) in noted}
    if not known:
        return list(shipment.files), []
    target = await look_at_source(movers, Data("", SIMPLE, shipment.to), guest=guest)
    sizes = target.sizes if target.is_folder else {place: size for place in known for size in target.sizes.values()}
    there = [(file, place) for file, place in shipment.files if place in known and sizes.get(place) == file.size]
    return [each for each in shipment.files if each not in there], there


async def _send_past_here(shipment: Shipment, home: Path, tell: TellRoad) -> str:
    """Send them without this service's disk and network; by whom, in words. Empty: nobody else can."""
    mover, platform = shipment.mover, shipment.platform
    with suppress(NoWay):
        if isinstance(mover, TransferService) and isinstance(platform, LiesInCollection):
            return await _send_by_service(shipment, platform, mover, home, tell)
    try:
        if isinstance(mover, PutsByAddress) and isinstance(platform, SendsFiles):
            return await _send_from_system(shipment, platform, mover, tell)
    except NoWay as no_way:
        to = without_secrets(shipment.to)
        log.info("data.no-way", session=shipment.session, to=to, platform=platform.name, why=str(no_way))
    return ""


async def _send_by_service(
    shipment: Shipment, platform: LiesInCollection, mover: TransferService, home: Path, tell: TellRoad
) -> str:
    """Have the files moved from the system itself by one transfer; NoWay if it is in no collection."""
    moves = [
        (await platform.find_in_collection(shipment.session, file.path), shipment.address(place))
        for file, place in shipment.files
    ]
    size = sum(file.size for file, _ in shipment.files)
    progress = tell(f"{mover.name} is sending {count_text(len(moves), 'file')} to {without_secrets(shipment.to)}")
    await send_by_service(SentTasks(home, shipment.session), mover, moves, size, progress)
    return f"by {mover.name} from {shipment.platform.name} itself"


async def _send_from_system(shipment: Shipment, platform: SendsFiles, mover: PutsByAddress, tell: TellRoad) -> str:
    """Have the system send the files by itself; NoWay if it can't, or if one has to be sent from here."""
    name, where = shipment.platform.name, without_secrets(shipment.to)
    tell(f"{name} is sending {count_text(len(shipment.files), 'file')} to {where}")(0, None)
    puts = []
    for file, place in shipment.files:
        if (put := await mover.open_put(place, file.size, shipment.to)) is None:
            raise NoWay("")
        puts.append(FilePut(file.path, file.size, put.url, put.headers))
    await platform.send_files(shipment.session, puts, public_only=mover.policy.public_only)
    for _, place in shipment.files:
        await mover.close_put(place, shipment.to)
    return f"by {name} itself"
