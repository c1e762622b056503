"""Sends a session's results to an address by the shortest road: a transfer service, the system itself, or through here.

Completely sent files are recorded, so that an interrupted run continues with the next file.
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
from sublet.kernel.errors import DataNotSent
from sublet.kernel.faults import point
from sublet.kernel.log import log
from sublet.kernel.texts import count_text
from sublet.movers.arrival import without_secrets
from sublet.movers.port import SIMPLE, Content, Progress, Pushes, PutsByAddress, TransferService
from sublet.platforms.caching import FilePut, LiesInCollection, NoWay, SendsFiles
from sublet.platforms.port import Platform, ResultFile

LEDGER = "files"  # beside a session's transfers: a line for each completely sent file
TellRoad = Callable[[str], Progress]  # what is being sent, in words → its progress callback


@dataclass(frozen=True, slots=True)
class SentFile:
    """A result that was sent, and its new address."""

    path: str
    size: int
    to: str
    road: str = ""  # who sent it, in words; empty: this service
    was_there: bool = False  # an earlier run sent it, and it is still there


@dataclass(frozen=True)
class Shipment:
    """Results of a session that go to one address."""

    session: str
    platform: Platform
    mover: Pushes
    files: Sequence[tuple[ResultFile, str]]  # each with its path below the address
    to: str  # ends in / if it is a folder

    def address(self, place: str) -> str:
        """Return the address that a file goes to."""
        return f"{self.to}{quote(place)}" if self.to.endswith("/") else self.to


@dataclass(frozen=True)
class SentLedger:
    """Records which files of a session were sent completely, and where; only digests, as addresses may hold secrets."""

    home: Path
    session: str

    @property
    def _file(self) -> Path:
        return SentTasks(self.home, self.session).folder / LEDGER

    def read(self) -> set[str]:
        """Return the recorded digests."""
        try:
            return set(self._file.read_text().splitlines())
        except FileNotFoundError:
            return set()

    def note(self, file: ResultFile, address: str) -> None:
        """Record that a file was sent."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._file.open("a") as lines:
            lines.write(f"{name_sent(file, address)}\n")


def describe_sent(count: int, to: str, road: str) -> str:
    """Describe how many files went where, and who sent them."""
    words = f"{count_text(count, 'file')} to {without_secrets(to)}"
    return f"{words}, {road}" if road else words


def name_sent(file: ResultFile, address: str) -> str:
    """Return a digest of this version of a file at this address."""
    version = f"{file.path}\0{file.size}\0{file.modified.timestamp()}\0{address}"
    return hashlib.sha256(version.encode(errors="surrogateescape")).hexdigest()


async def send_shipment(
    shipment: Shipment, movers: Movers, home: Path, tell: TellRoad, *, guest: bool = False
) -> AsyncIterator[SentFile]:
    """Send all files that aren't there yet, and yield each once it is there; raise DataNotSent on failure."""
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
    """Split the files into those still to be sent, and those sent earlier that are still there with the same size."""
    noted = await asyncio.to_thread(ledger.read)
    known = {place for file, place in shipment.files if noted and name_sent(file, shipment.address(place)) in noted}
    if not known:
        return list(shipment.files), []
    target = await look_at_source(movers, Data("", SIMPLE, shipment.to), guest=guest)
    sizes = target.sizes if target.is_folder else {place: size for place in known for size in target.sizes.values()}
    there = [(file, place) for file, place in shipment.files if place in known and sizes.get(place) == file.size]
    return [each for each in shipment.files if each not in there], there


async def _send_past_here(shipment: Shipment, home: Path, tell: TellRoad) -> str:
    """Send the files without passing through this service; return who sent them, or an empty string if nobody can."""
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
    """Have a transfer service send the files from the system; raise NoWay if the system is in no collection."""
    moves = [
        (await platform.find_in_collection(shipment.session, file.path), shipment.address(place))
        for file, place in shipment.files
    ]
    size = sum(file.size for file, _ in shipment.files)
    progress = tell(f"{mover.name} is sending {count_text(len(moves), 'file')} to {without_secrets(shipment.to)}")
    await send_by_service(SentTasks(home, shipment.session), mover, moves, size, progress)
    return f"by {mover.name} from {shipment.platform.name} itself"


async def _send_from_system(shipment: Shipment, platform: SendsFiles, mover: PutsByAddress, tell: TellRoad) -> str:
    """Have the system send the files itself; raise NoWay if it can't, or if one must be sent from here."""
    name, where = shipment.platform.name, without_secrets(shipment.to)
    tell(f"{name} is sending {count_text(len(shipment.files), 'file')} to {where}")(0, None)
    puts = []
    for file, place in shipment.files:
        if (put := await mover.open_put(place, file.size, shipment.to)) is None:
            raise NoWay("")
        puts.append(FilePut(file.path, file.size, put.url, put.headers))
    await platform.send_files(shipment.session, puts, public_only=mover.policy.public_only)
    failures = []
    for _, place in shipment.files:
        try:
            await mover.close_put(place, shipment.to)
        except DataNotSent as error:  # the others have come, and are not left under their temporary names
            failures.append(error)
    if failures:
        raise failures[0]
    return f"by {name} itself"
