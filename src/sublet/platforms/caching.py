"""A cache of data on a system: what a platform that has one can be asked. One that has none knows nothing of this."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from sublet.data.model.links import FileLink, LinkedFiles
from sublet.data.model.tools import ToolPlan
from sublet.platforms.port import ArchiveReader

MOST_REMEMBERED = 10_000


class EntryPhase(StrEnum):
    """Where an entry is."""

    THERE = "there"
    BUSY = "busy"  # someone brings it
    CAME = "came"  # a program of the system's own has brought it, and it is to be checked and published
    FAILED = "failed"  # the system could not fetch it
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class EntryState:
    """What is known of an entry."""

    phase: EntryPhase
    done: int = 0  # bytes
    total: int = 0
    kind: str = ""  # of a failure: unreachable, refused, changed, wrong, cut, full, private, failed
    why: str = ""


class NoWay(Exception):
    """The system can't fetch by itself; the words say why, and another road may lead there."""


class NoPython(NoWay):
    """The system has none that could fetch; a program of its own might."""


class HostAway(NoWay):
    """The system can't reach the host that has it; from another host it might."""

    def __init__(self, why: str, host: str) -> None:
        """Say why, and which host that is."""
        super().__init__(why)
        self.host = host


@dataclass(frozen=True, slots=True)
class CachePlacement:
    """Content of the cache, and where a session sees it."""

    entry: str  # empty: it is no entry, but what another session left
    target: str  # below the session's directory
    is_writable: bool = False


class DataCache(Protocol):
    """The cache of one system. A session is named by its key; what it needs is never removed."""

    @property
    def is_here(self) -> bool:
        """Whether it is on the machine that the service runs on, so that nothing is gained by it for files of that."""
        ...

    async def want(self, entry: str, user: str, label: str = "") -> EntryState:
        """Note that a session needs an entry, which people call so; where it is."""
        ...

    async def look(self, entry: str) -> EntryState:
        """Where it is now."""
        ...

    async def list_there(self, entries: Collection[str]) -> Collection[str]:
        """Those of some entries that are there; asked of a system once for all of them, and not again for a while."""
        ...

    async def make_room(self, size: int) -> None:
        """Remove what has not been needed for the longest time, until so many bytes more are within the quota."""
        ...

    async def fetch(self, entry: str, files: LinkedFiles, *, public_only: bool, largest: int) -> None:
        """Have the system begin to fetch it; NoWay if it may not, can't, or could not lately."""
        ...

    def note_no_way(self, host: str, why: str) -> None:
        """Remember for a while that the system can't reach a host."""
        ...

    async def claim(self, entry: str) -> Mapping[str, int] | None:
        """Be the one who brings it: the sizes of the files that have come so far; None: somebody else does."""
        ...

    async def measure(self, entry: str) -> Mapping[str, int]:
        """The sizes of the files that have come so far."""
        ...

    async def write(self, entry: str, path: str, offset: int, pieces: AsyncIterator[bytes]) -> None:
        """Write one file of it from a byte on; an entry that is one file has the path ''."""
        ...

    async def unpack(self, entry: str, archive: AsyncIterator[bytes]) -> None:
        """Write many small files of it, which come as a tar archive."""
        ...

    async def publish(self, entry: str, files: LinkedFiles) -> None:
        """It is whole: let it be used; PlatformRefused says what differs from what was expected."""
        ...

    async def give_up(self, entry: str, *, drop: bool = False) -> None:
        """Let others bring it; `drop`: without what has come, which is in the way."""
        ...

    async def place(self, user: str, placements: Sequence[CachePlacement]) -> None:
        """Put entries where a session, which is not submitted yet, will see them."""
        ...

    async def take(self, user: str, session: str, files: Sequence[tuple[str, str]], placement: CachePlacement) -> None:
        """Put what another session left where this one will see it; its paths there, and below the placement."""
        ...

    def find_content(self, entry: str) -> str:
        """The path of an entry's content on the system."""
        ...

    async def leave(self, user: str) -> Sequence[str]:
        """A session that was not submitted needs nothing any more: what is fetched for it alone stops.

        What was noted of transfers that nobody needs now, and that others carry out.
        """
        ...


@runtime_checkable
class RunsTools(DataCache, Protocol):
    """A cache on a system that has programs of its own for bringing data."""

    async def fetch_by(self, entry: str, plan: ToolPlan, *, largest: int) -> None:
        """Have one of them begin to bring it; NoWay if it may not, can't, or could not lately."""
        ...


@runtime_checkable
class TakesTransfers(Protocol):
    """A cache that a service of transfers reaches, so that data gets there past this machine and past the login."""

    def find_collection(self, entry: str, *, is_folder: bool) -> str:
        """The address by which what comes of an entry is written; NoWay if there is none."""
        ...

    async def accept_moved(self, entry: str, *, is_folder: bool) -> None:
        """All of it was written by that address."""
        ...

    async def read_note(self, entry: str) -> str:
        """What was noted of the transfer that brings an entry; empty: nothing."""
        ...

    async def write_note(self, entry: str, text: str) -> None:
        """Note it, on one line; empty: there is none any more."""
        ...

    async def beat(self, entry: str) -> None:
        """Whoever claimed it is still there."""
        ...


@dataclass(frozen=True, slots=True)
class FilePut:
    """A file that a session left, and where a system puts it."""

    path: str  # below the session's working directory
    size: int
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@runtime_checkable
class SendsFiles(Protocol):
    """A platform that sends what its sessions left by itself, so that it need not pass this machine."""

    async def send_files(self, key: str, puts: Sequence[FilePut], *, public_only: bool) -> None:
        """Put each to its address, whole; NoWay if it may not, can't, or could not: then it is sent from here."""
        ...


@runtime_checkable
class LiesInCollection(Protocol):
    """A platform whose sessions' files a service of transfers reads, so that results need not pass this machine."""

    async def find_in_collection(self, key: str, path: str) -> str:
        """The address by which that reads a file that a session left; NoWay if there is none."""
        ...


@runtime_checkable
class UnpacksArchives(DataCache, Protocol):
    """A cache that unpacks what it has, where it is."""

    async def unpack_archive(self, entry: str, target: str) -> None:
        """Unpack one entry as what comes of another; PlatformRefused says why not, NoWay that nothing there can."""
        ...


@runtime_checkable
class CopiesOwn(DataCache, Protocol):
    """A cache that takes what lies on its own system."""

    async def copy_own(self, entry: str, path: str, *, is_folder: bool) -> None:
        """Copy a file or a folder of the system as what comes of an entry; links are what they lead to."""
        ...


@runtime_checkable
class CachesData(Protocol):
    """A platform that has a cache of data."""

    cache: int  # bytes that are kept there for later sessions; 0: no limit

    async def open_cache(self) -> DataCache:
        """It."""
        ...


@runtime_checkable
class FetchesImages(Protocol):
    """A platform whose sessions fetch images by themselves, and which can have one before their time begins."""

    async def find_images(self, images: Mapping[str, str]) -> Collection[str]:
        """Those of these images of registries (`docker://…`, with what caches call each, if known) that are there."""
        ...

    async def fetch_image(self, location: str, tool: str, target: Path, user: str) -> bool:
        """Have one for a session, in the store of the tool or as the file `target`; else the session tries.

        Whether it is there.
        """
        ...


@runtime_checkable
class SendsArchives(Protocol):
    """A platform to which images go from this machine, as archives, which are kept here once for all its sessions."""

    async def open_archives(self) -> DataCache:
        """Where they are kept."""
        ...


@runtime_checkable
class ExpectsImages(Protocol):
    """A platform whose nodes are on other systems, to whose own caches images are brought."""

    async def expect_image(self, location: str, entry: str, user: str) -> str:
        """Have a session run only where an image of a registry is in the cache, as this entry; its path there."""
        ...


@runtime_checkable
class UnpacksFiles(Protocol):
    """A platform that unpacks image files which lie there already, before a session's time."""

    async def unpack_file(self, path: str, tool: str, user: str) -> Mapping[str, str]:
        """Have one unpacked, once for all; the names in a session's directory that it is found by, and what they lead
        to: none, if the session has to do it."""
        ...


@runtime_checkable
class MakesImages(Protocol):
    """A platform that makes what its container tools run of archives of this machine, before a session's time."""

    async def find_made(self, archives: Mapping[str, ArchiveReader]) -> Collection[str]:
        """Those of which that is there already, by what they are called here."""
        ...


# Of each platform every request asks these. They look at its class: a protocol looks at its members, one by one, which
# takes ten times as long.


def has_cache(platform: object) -> bool:
    """Whether it is a platform that `CachesData`."""
    return hasattr(type(platform), CachesData.open_cache.__name__)


def can_fetch_images(platform: object) -> bool:
    """Whether it is a platform that `FetchesImages`."""
    return hasattr(type(platform), FetchesImages.find_images.__name__)


def can_make_images(platform: object) -> bool:
    """Whether it is a platform that `MakesImages`."""
    return hasattr(type(platform), MakesImages.find_made.__name__)


@dataclass
class EntryMemory:
    """What was seen of entries a short while ago, so that a system isn't asked by everyone who asks for offers."""

    seconds: float = 30.0
    _seen: dict[str, tuple[float, bool]] = field(default_factory=dict)  # entries → when, and whether it was there

    def note(self, entry: str, is_there: bool, now: float) -> None:
        """It was looked for just now."""
        if len(self._seen) >= MOST_REMEMBERED:
            self._seen.clear()
        self._seen[entry] = now, is_there

    def recall(self, entry: str, now: float) -> bool | None:
        """Whether it was there; None: nobody has looked lately."""
        when, is_there = self._seen.get(entry, (0.0, False))
        return is_there if when and now - when < self.seconds else None

    def forget(self) -> None:
        """Something was removed."""
        self._seen.clear()


def describe_plan(files: LinkedFiles, *, public_only: bool, largest: int, rate: int) -> dict[str, object]:
    """What a system is told to fetch; it holds secrets."""
    return {
        "folder": files.is_folder,
        "total": files.size or 0,
        "public": public_only,
        "largest": largest,
        "rate": rate,
        "links": [_describe_link(link) for link in files.links],
    }


def _describe_link(link: FileLink) -> dict[str, object]:
    return {
        "path": link.path,
        "url": link.url,
        "headers": dict(link.headers),
        "size": link.size,
        "checksum": link.checksum,
        "version": link.version,
    }
