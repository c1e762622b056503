"""What the service asks of a mover: bring this, whole and checked, or say why not."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.model.credentials import Credential
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.data.model.tools import ToolPlan
from sublet.movers.logins import ImageLogin

SIMPLE = "simple-data-resource"
Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all if known


@dataclass(frozen=True)
class Policy:
    """What a mover may bring, for whoever it works for. Every mover is made with one, and keeps to it."""

    public_only: bool = True  # this machine and private networks are out of reach; see kernel/public_addresses.py
    largest: int = 0  # bytes that one item may have, as strangers could name an endless one; 0: any number
    file_roots: Sequence[Path] | None = ()  # files of this machine: only those below these; None: any
    logins: Sequence[ImageLogin] = ()  # the service's own logins to registries
    app_archives: Path | None = None  # where the code of apps is kept; None: nowhere
    rucio_server: str = ""  # where names of Rucio are looked up that name no server: https://rucio.example.org
    globus_transfer: str = "https://transfer.api.globus.org"  # Globus' Transfer service
    globus_auth: str = "https://auth.globus.org"  # and its sign-in
    ivo_resolver: str = ""  # where IVOIDs are looked up: https://resolver.example.org/{ivoid}
    credentials: Sequence[Credential] = ()  # of the person whose data it is, each for one place


UNLIMITED = Policy(public_only=False, file_roots=None)  # for what a person does on their own machine


class Mover(Protocol):
    """One way to bring data somewhere. Its entry point names what makes it: `make(policy=…)`."""

    name: str
    schemes: Sequence[str]  # of locations: ("http", "https")

    def check(self, data: Data) -> Sequence[Reason]:
        """What is wrong with it, without touching the network."""
        ...

    async def measure(self, data: Data) -> int | None:
        """Its size in bytes if that can be found out in a moment, else None; failures are told when it is brought."""
        ...

    def estimate(self, data: Data) -> timedelta:
        """How long it is going to take: the asker's own estimate first, else from its size, else a guess."""
        ...

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Bring it into the directory `target`; goes on where an earlier try stopped; raises DataNotThere."""
        ...


@dataclass(frozen=True)
class Content:
    """A file that is sent somewhere, read as it goes: it may be larger than memory, and lie on another machine."""

    path: str  # where it goes, below the address that it is sent to
    size: int
    read: Callable[[int], AsyncIterator[bytes]]  # from this byte on


@runtime_checkable
class Pushes(Protocol):
    """A mover that can also send files to where its addresses lead."""

    schemes: Sequence[str]

    def check_push(self, location: str) -> str:
        """Why nothing can be sent to an address, without touching the network; empty: it may be tried."""
        ...

    async def push(self, content: Content, location: str, progress: Progress) -> str:
        """Send a file whole, or raise DataNotSent and leave nothing that looks whole; the address that it has now.

        An address that ends in / is a folder's. To send the same again does no harm.
        """
        ...


@dataclass(frozen=True)
class PutAddress:
    """Where a file is put by one request, and what is shown for that."""

    url: str = field(repr=False)  # it may be signed, so it is as secret as a password
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@runtime_checkable
class PutsByAddress(Protocol):
    """A mover whose files are put to addresses, so that a system may send what lies there by itself."""

    policy: Policy

    async def open_put(self, path: str, size: int, location: str) -> PutAddress | None:
        """Where a file is put that is sent to a location; None: it has to be sent from here. Raises DataNotSent."""
        ...

    async def close_put(self, path: str, location: str) -> None:
        """All of it was put there: give it its name. Raises DataNotSent."""
        ...


@dataclass(frozen=True)
class ResolvedFile:
    """Where data that has only a name can be had: one file of it, or all of it."""

    path: str  # below the directory of the data; empty: whatever is brought keeps the names that it has there
    replicas: Sequence[Data]  # the same content by other addresses, best first, with size and checksum where known


@runtime_checkable
class Resolves(Protocol):
    """A mover whose addresses only name data: what it finds is brought by the movers of other addresses."""

    name: str
    schemes: Sequence[str]

    def check(self, data: Data) -> Sequence[Reason]:
        """What is wrong with it, without touching the network."""
        ...

    def estimate(self, data: Data) -> timedelta:
        """How long it is going to take: the asker's own estimate first, else from its size, else a guess."""
        ...

    async def resolve(self, data: Data) -> Sequence[ResolvedFile]:
        """Each file of it, and where that can be had; raises DataNotThere."""
        ...


class Interrupted(Exception):
    """It broke off, and may go on later: the words say how."""

    def __init__(self, why: str, pause: float = 0.0) -> None:
        """Say why, and how long the server wants to be left alone, in seconds."""
        super().__init__(why)
        self.pause = pause


class SourceChanged(Exception):
    """It is not what it was when it was looked at, so what came of it is of no use."""


class NoLinks(Exception):
    """Something of it can't be read by a link, or not well, so that it is brought here first."""


@runtime_checkable
class Links(Protocol):
    """A mover that knows where the files of its data can be read, so that they need not be brought here first."""

    policy: Policy

    async def links(self, data: Data) -> LinkedFiles:
        """All files, each with what is known of it now; raises DataNotThere and NoLinks."""
        ...

    def read(self, data: Data, link: FileLink, offset: int) -> AsyncIterator[bytes]:
        """One of them from a byte on, in pieces; raises Interrupted, SourceChanged and DataNotThere."""
        ...


@runtime_checkable
class PlansTool(Protocol):
    """A mover whose data a program brings that systems have, too, so that it need not be brought here first."""

    policy: Policy

    async def plan(self, data: Data) -> ToolPlan:
        """How it is brought, as it is now; raises DataNotThere, and NoLinks where only this machine can."""
        ...


@runtime_checkable
class ReadsTogether(Protocol):
    """A mover with links that reads many small files at once: each by itself would take a round trip."""

    async def read_together(self, data: Data, links: Sequence[FileLink]) -> Sequence[bytes]:
        """Some of them, which memory holds, whole; raises Interrupted, SourceChanged and DataNotThere."""
        ...


@runtime_checkable
class ReadsByParts(Protocol):
    """A mover with links whose files have parts that are checked each as a whole, and read from their beginning."""

    async def find_start(self, data: Data, link: FileLink, offset: int) -> int:
        """Where the part begins that has this byte; raises DataNotThere."""
        ...


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """What a server has at an address: of each file its size, and what tells this version of it from another."""

    is_folder: bool
    files: Mapping[str, tuple[int, str]]  # by their paths; a single file by its name


@runtime_checkable
class TellsVersions(Protocol):
    """A mover without links whose server still says which version of a file it has."""

    async def list_versions(self, data: Data) -> ServerFiles:
        """All files as they are there now; raises DataNotThere."""
        ...


@runtime_checkable
class LiesOnSystems(Protocol):
    """A mover of files that lie on a system, which may be the very one that needs them."""

    async def find_on(self, data: Data, platform: str) -> tuple[str, LinkedFiles] | None:
        """The path on this platform's system, and all files; None: it is on another. Raises DataNotThere."""
        ...


class TransferPhase(StrEnum):
    """Where a transfer is that a service of transfers carries out."""

    MOVING = "moving"
    DONE = "done"
    FAILED = "failed"
    FULL = "full"  # there is no room at its target
    UNKNOWN = "unknown"  # the service knows nothing of it (any more)


@dataclass(frozen=True, slots=True)
class TransferState:
    """How far a transfer is, or how it ended."""

    phase: TransferPhase
    done: int  # bytes
    why: str = ""  # it failed, or does not get on


@runtime_checkable
class TransferService(Protocol):
    """A mover whose service moves data between two places of its own; this machine only says so, and watches."""

    name: str
    policy: Policy

    async def reserve(self, location: str) -> str:
        """A name under which a transfer is submitted once, however often that is tried; raises DataNotThere."""
        ...

    async def submit(self, moves: Sequence[tuple[str, str]], submission: str) -> str:
        """Have each moved to its target, files or folders (which end in /); the task. Raises DataNotThere."""
        ...

    async def rename(self, location: str, target: str) -> None:
        """Give a file that was moved the name of its target, unless it has it already; raises DataNotThere."""
        ...

    async def look(self, location: str, task: str) -> TransferState:
        """How far it is; raises DataNotThere, and Interrupted if the service can't be reached."""
        ...

    async def stop(self, location: str, task: str) -> None:
        """Nobody needs it any more; done as well as can be."""
        ...


@dataclass(frozen=True)
class LeftFiles:
    """Files that a session left where it ran."""

    platform: str
    session: str
    files: Sequence[tuple[str, str]]  # their paths below its working directory (empty: an empty folder), and the data's
    size: int
    is_folder: bool


@runtime_checkable
class FindsLeft(Protocol):
    """A mover of what sessions left, which may be on the very system that needs it."""

    async def find_left(self, data: Data) -> LeftFiles:
        """Where the files are; raises DataNotThere."""
        ...


@runtime_checkable
class Pins(Protocol):
    """A mover whose addresses may mean something else tomorrow."""

    async def pin(self, data: Data) -> Data:
        """The same data as it is now, by an address that can't mean another one later; raises DataNotThere."""
        ...

    async def measure(self, data: Data) -> int | None:
        """Its size in bytes if that can be found out in a moment, else None."""
        ...


@runtime_checkable
class SignsIn(Protocol):
    """A mover that has logins of this service's own."""

    def signs_in(self, data: Data) -> bool:
        """Whether it has one for this: then nobody else can bring it."""
        ...


AnyMover = Mover | Resolves


def kinds_of(mover: AnyMover) -> Sequence[str]:
    """The kinds of data that a mover brings: simple ones, unless it has `kinds` of its own."""
    kinds: Sequence[str] = getattr(mover, "kinds", (SIMPLE,))
    return kinds
