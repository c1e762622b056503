"""The port of movers: what the service asks of a mover, and what a mover may do besides."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
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
Progress = Callable[[int, int | None], None]  # bytes so far, and the total if known


@dataclass(frozen=True)
class Policy:
    """What a mover may bring, for the person it works for. Every mover is made with a policy, and obeys it."""

    public_only: bool = True  # this machine and private networks are out of reach; see kernel/public_addresses.py
    largest: int = 0  # bytes per item, as strangers could name an endless one; 0: no limit
    file_roots: Sequence[Path] | None = ()  # files of this machine are allowed only below these; None: anywhere
    logins: Sequence[ImageLogin] = ()  # the service's own logins to registries
    app_archives: Path | None = None  # where the code of apps is stored; None: nowhere
    rucio_server: str = ""  # for Rucio names without a server: https://rucio.example.org
    globus_transfer: str = "https://transfer.api.globus.org"  # Globus' Transfer service
    globus_auth: str = "https://auth.globus.org"  # Globus' sign-in
    ivo_resolver: str = ""  # resolver of IVOIDs: https://resolver.example.org/{ivoid}
    credentials: Sequence[Credential] = ()  # of the person whose data it is, each for one place


UNLIMITED = Policy(public_only=False, file_roots=None)  # for what people do on their own machines


class Mover(Protocol):
    """A way to bring data from one kind of address. Its entry point names a factory: `make(policy=…)`."""

    name: str
    schemes: Sequence[str]  # of addresses: ("http", "https")

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the data, without network access."""
        ...

    async def measure(self, data: Data) -> int | None:
        """Return the size in bytes if it can be found quickly, or None.

        Failures are reported when the data is brought.
        """
        ...

    def estimate(self, data: Data) -> timedelta:
        """Estimate how long bringing takes: the request's own estimate, or from its size, or a guess."""
        ...

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Bring the data into the directory `target`, resuming an earlier attempt; raise DataNotThere on failure."""
        ...


@dataclass(frozen=True)
class Content:
    """A file to be sent, read as a stream: it may be larger than memory, and on another machine."""

    path: str  # its path below the address that it is sent to
    size: int
    read: Callable[[int], AsyncIterator[bytes]]  # reads from this byte on


@runtime_checkable
class Pushes(Protocol):
    """A mover that can also send files to its addresses."""

    schemes: Sequence[str]

    def check_push(self, location: str) -> str:
        """Return why nothing can be sent to an address, without network access; empty if it may be tried."""
        ...

    async def push(self, content: Content, location: str, progress: Progress) -> str:
        """Send a file and return its address; raise DataNotSent and leave nothing that looks complete on failure.

        An address that ends in / is a folder. Sending the same file again is harmless.
        """
        ...


@dataclass(frozen=True)
class PutAddress:
    """The address and headers to upload a file with one PUT request."""

    url: str = field(repr=False)  # may be signed, so it is as secret as a password
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@runtime_checkable
class PutsByAddress(Protocol):
    """A mover that can give out addresses to PUT files to, so that a system can send its files itself."""

    policy: Policy

    async def open_put(self, path: str, size: int, location: str) -> PutAddress | None:
        """Return where to PUT a file for a location, or None if it must be sent from here.

        Raise DataNotSent if the location can't be used.
        """
        ...

    async def close_put(self, path: str, location: str) -> None:
        """Give the completely sent file its name; raise DataNotSent on failure."""
        ...


@dataclass(frozen=True)
class ResolvedFile:
    """The addresses of data known only by name: of one file, or of everything."""

    path: str  # below the data's directory; empty: the files keep their own names
    replicas: Sequence[Data]  # the same content at several addresses, best first, with size and checksum if known


@runtime_checkable
class Resolves(Protocol):
    """A mover whose addresses are only names: it resolves them to addresses that other movers bring."""

    name: str
    schemes: Sequence[str]

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the data, without network access."""
        ...

    def estimate(self, data: Data) -> timedelta:
        """Estimate how long bringing takes: the request's own estimate, or from its size, or a guess."""
        ...

    async def resolve(self, data: Data) -> Sequence[ResolvedFile]:
        """Return each file and the addresses it can be brought from; raise DataNotThere if there are none."""
        ...


class Interrupted(Exception):
    """It broke off, and may go on later: the words say how."""

    def __init__(self, why: str, pause: float = 0.0) -> None:
        """Say why, and how many seconds the server wants to be left alone."""
        super().__init__(why)
        self.pause = pause


class SourceChanged(Exception):
    """It is not what it was when it was looked at, so what came of it is of no use."""


class NoLinks(Exception):
    """Something of it can't be read by a link, or not well, so that it is brought here first."""


@runtime_checkable
class Links(Protocol):
    """A mover that can link to its data's files, so that they needn't be brought here first."""

    policy: Policy

    async def links(self, data: Data) -> LinkedFiles:
        """Return links to all files as they are now; raise DataNotThere or NoLinks if that isn't possible."""
        ...

    def read(self, data: Data, link: FileLink, offset: int) -> AsyncIterator[bytes]:
        """Read a linked file from a byte offset on; raise Interrupted, SourceChanged or DataNotThere."""
        ...


@runtime_checkable
class PlansTool(Protocol):
    """A mover whose data can be fetched by a program that systems have, so that it needn't be brought here first."""

    policy: Policy

    async def plan(self, data: Data) -> ToolPlan:
        """Plan the fetch of the data as it is now; raise DataNotThere, or NoLinks if only this machine can bring it."""
        ...


@dataclass(frozen=True)
class KnownContent:
    """What data is now, as far as that can be known before it is brought."""

    named: LinkedFiles  # what its cache entry is named by
    files: LinkedFiles  # all files, if they are known beforehand; otherwise none
    # Brings exactly this into a directory, and shows no credential unless the name is that of a person's own entry
    bring: Callable[[Path, Progress], Awaitable[None]] = field(repr=False, compare=False)


@runtime_checkable
class KnowsContent(Protocol):
    """A mover that brings data as a whole, and can tell beforehand whether it is what came the last time."""

    policy: Policy

    async def find_content(self, data: Data) -> KnownContent:
        """Return what the data is now; raise DataNotThere, or NoLinks if it is this machine's own anyway."""
        ...


@runtime_checkable
class ReadsTogether(Protocol):
    """A mover with links that reads many small files in one round trip."""

    async def read_together(self, data: Data, links: Sequence[FileLink]) -> Sequence[bytes]:
        """Read several small files completely; raise Interrupted, SourceChanged or DataNotThere."""
        ...


@runtime_checkable
class ReadsByParts(Protocol):
    """A mover with links whose files have parts that are checked, and therefore read, as a whole."""

    async def find_start(self, data: Data, link: FileLink, offset: int) -> int:
        """Return the offset of the part that has this byte; raise DataNotThere on failure."""
        ...


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """The files that a server has at an address, with size and version of each."""

    is_folder: bool
    files: Mapping[str, tuple[int | None, str]]  # by path; a single file by its name; an empty version is not known


@runtime_checkable
class TellsVersions(Protocol):
    """A mover whose server reports the versions of files."""

    async def list_versions(self, data: Data) -> ServerFiles:
        """Return all files as they are now; raise DataNotThere on failure."""
        ...


@runtime_checkable
class LiesOnSystems(Protocol):
    """A mover of files on a system, which may be the very system that needs them."""

    async def find_on(self, data: Data, platform: str) -> tuple[str, LinkedFiles] | None:
        """Return the path on this platform's system and all files, or None if they are on another.

        Raise DataNotThere if they can't be found.
        """
        ...


class TransferPhase(StrEnum):
    """The phase of a transfer by a transfer service."""

    MOVING = "moving"
    DONE = "done"
    FAILED = "failed"
    FULL = "full"  # there is no room at its target
    UNKNOWN = "unknown"  # the service doesn't know it (any more)


@dataclass(frozen=True, slots=True)
class TransferState:
    """A transfer's progress, or how it ended."""

    phase: TransferPhase
    done: int  # bytes
    why: str = ""  # why it failed, or is stuck


@runtime_checkable
class TransferService(Protocol):
    """A mover whose service moves data between two places by itself; this machine only submits and polls."""

    name: str
    policy: Policy

    async def reserve(self, location: str) -> str:
        """Return an idempotency key, under which a transfer is submitted only once; raise DataNotThere on failure."""
        ...

    async def submit(self, moves: Sequence[tuple[str, str]], submission: str) -> str:
        """Have each file or folder (ending in /) moved to its target; return the task.

        Raise DataNotThere on failure.
        """
        ...

    async def rename(self, location: str, target: str) -> None:
        """Rename a moved file to its target, unless that was done already; raise DataNotThere on failure."""
        ...

    async def look(self, location: str, task: str) -> TransferState:
        """Return a task's progress; raise DataNotThere, or Interrupted if the service can't be reached."""
        ...

    async def stop(self, location: str, task: str) -> None:
        """Cancel a task, on a best-effort basis."""
        ...


@dataclass(frozen=True)
class LeftFiles:
    """Files that a session left where it ran."""

    platform: str
    session: str
    files: Sequence[tuple[str, str]]  # paths below its working directory (empty: an empty folder), and in the data
    size: int
    is_folder: bool


@runtime_checkable
class FindsLeft(Protocol):
    """A mover of sessions' results, which may be on the very system that needs them."""

    async def find_left(self, data: Data) -> LeftFiles:
        """Return where the files are; raise DataNotThere on failure."""
        ...


@runtime_checkable
class Pins(Protocol):
    """A mover whose addresses may mean something else tomorrow."""

    async def pin(self, data: Data) -> Data:
        """Return the data with an address that will always mean its current content; raise DataNotThere on failure."""
        ...

    async def measure(self, data: Data) -> int | None:
        """Return the size in bytes if it can be found quickly, or None."""
        ...


@runtime_checkable
class SignsIn(Protocol):
    """A mover that uses this service's own logins."""

    def signs_in(self, data: Data) -> bool:
        """Whether the service has a login for this data; if so, nobody else can bring it."""
        ...


AnyMover = Mover | Resolves


def kinds_of(mover: AnyMover) -> Sequence[str]:
    """Return the kinds of data that a mover brings: its `kinds`, or simple data only."""
    kinds: Sequence[str] = getattr(mover, "kinds", (SIMPLE,))
    return kinds
