"""A cache of data on a system: the protocols of platforms that have one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, runtime_checkable

from sublet.data.model.links import FileLink, LinkedFiles
from sublet.data.model.tools import ToolPlan
from sublet.platforms.port import ArchiveReader

MOST_REMEMBERED = 10_000


class EntryPhase(StrEnum):
    """The state of a cache entry."""

    THERE = "there"
    BUSY = "busy"  # someone is transferring it
    CAME = "came"  # a program of the system has transferred it; it must be checked and published
    FAILED = "failed"  # the system could not fetch it
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class EntryState:
    """What is known of a cache entry."""

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
        """Set the reason and the host that the system can't reach."""
        super().__init__(why)
        self.host = host


@dataclass(frozen=True, slots=True)
class CachePlacement:
    """Cached content, and where a session sees it."""

    entry: str  # empty: it isn't a cache entry, but another session's result
    target: str  # below the session's directory
    is_writable: bool = False


class DataCache(Protocol):
    """The cache of one system. Sessions are named by their keys; entries that a session needs are never removed."""

    @property
    def is_here(self) -> bool:
        """Whether the cache is on the service's own machine, where caching that machine's files gains nothing."""
        ...

    async def want(self, entry: str, user: str, label: str = "") -> EntryState:
        """Record that a session needs an entry, with a label for people, and return the entry's state."""
        ...

    async def look(self, entry: str) -> EntryState:
        """Return an entry's current state."""
        ...

    async def list_there(self, entries: Collection[str]) -> Collection[str]:
        """Return which entries are in the cache.

        The system is asked once for all of them, and the answer is kept a while.
        """
        ...

    async def make_room(self, size: int) -> None:
        """Remove the least recently needed entries until this many more bytes fit in the quota."""
        ...

    async def fetch(self, entry: str, files: LinkedFiles, *, public_only: bool, largest: int) -> None:
        """Have the system start to fetch an entry; raise NoWay if it may not, can't, or recently failed to."""
        ...

    def note_no_way(self, host: str, why: str) -> None:
        """Remember for a while that the system can't reach a host."""
        ...

    async def claim(self, entry: str) -> Mapping[str, int] | None:
        """Claim the transfer of an entry and return the file sizes so far; None if somebody else has claimed it."""
        ...

    async def measure(self, entry: str) -> Mapping[str, int]:
        """Return the sizes of an entry's files that have arrived so far."""
        ...

    async def write(self, entry: str, path: str, offset: int, pieces: AsyncIterator[bytes]) -> None:
        """Write one file of an entry from an offset; an entry that is a single file has the path ''."""
        ...

    async def unpack(self, entry: str, archive: AsyncIterator[bytes]) -> None:
        """Write many small files of an entry from a tar archive."""
        ...

    async def publish(self, entry: str, files: LinkedFiles) -> None:
        """Check a complete entry and make it available; raise PlatformRefused if it differs from what was expected."""
        ...

    async def give_up(self, entry: str, *, drop: bool = False) -> None:
        """Release the claim on an entry, so that others can transfer it.

        `drop` also deletes the part received so far.
        """
        ...

    async def place(self, user: str, placements: Sequence[CachePlacement]) -> None:
        """Make entries visible in the directory of a session that isn't submitted yet."""
        ...

    async def take(self, user: str, session: str, files: Sequence[tuple[str, str]], placement: CachePlacement) -> None:
        """Make another session's results visible to this one.

        `files` pairs their paths there with paths in the placement.
        """
        ...

    def find_content(self, entry: str) -> str:
        """Return the path of an entry's content on the system."""
        ...

    async def leave(self, user: str) -> Sequence[str]:
        """Release the entries of a session that wasn't submitted, and stop fetching those that only it needed.

        Return the notes on external transfers that nobody needs now.
        """
        ...


@runtime_checkable
class RunsTools(DataCache, Protocol):
    """A cache on a system that has its own data transfer programs."""

    async def fetch_by(self, entry: str, plan: ToolPlan, *, largest: int) -> None:
        """Have one of the system's programs start to fetch an entry.

        Raise NoWay if it may not, can't, or recently failed to.
        """
        ...


@runtime_checkable
class TakesTransfers(Protocol):
    """A cache that a transfer service such as Globus can write to, bypassing this machine and the login."""

    def find_collection(self, entry: str, *, is_folder: bool) -> str:
        """Return the address to which a transfer service writes an entry; raise NoWay if there is none."""
        ...

    async def accept_moved(self, entry: str, *, is_folder: bool) -> None:
        """Take over an entry that the transfer service has written completely."""
        ...

    async def read_note(self, entry: str) -> str:
        """Return the note on the transfer of an entry; empty if there is none."""
        ...

    async def write_note(self, entry: str, text: str) -> None:
        """Write a one-line note on the transfer of an entry; an empty text removes it."""
        ...

    async def beat(self, entry: str) -> None:
        """Send a heartbeat for a claimed entry."""
        ...


@dataclass(frozen=True, slots=True)
class FilePut:
    """A result file, and the address to which a system uploads it."""

    path: str  # below the session's working directory
    size: int
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@runtime_checkable
class SendsFiles(Protocol):
    """A platform that uploads its sessions' results directly, without passing through this machine."""

    async def send_files(self, key: str, puts: Sequence[FilePut], *, public_only: bool) -> None:
        """Upload each file completely.

        Raise NoWay if it may not, can't or fails to: the files are then sent from here.
        """
        ...


@runtime_checkable
class LiesInCollection(Protocol):
    """A platform whose session files a transfer service can read, so that results bypass this machine."""

    async def find_in_collection(self, key: str, path: str) -> str:
        """Return the address by which a transfer service reads a result; raise NoWay if there is none."""
        ...


@runtime_checkable
class UnpacksArchives(DataCache, Protocol):
    """A cache that can unpack its archives in place."""

    async def unpack_archive(self, entry: str, target: str) -> None:
        """Unpack one entry as the content of another; raise PlatformRefused if it fails, NoWay if no tool there can."""
        ...


@runtime_checkable
class ReceivesData(DataCache, Protocol):
    """A cache on this machine, into which movers can bring data by themselves."""

    def receive(self, entry: str, *, is_folder: bool) -> AbstractAsyncContextManager[Path]:
        """Provide a folder into which a mover brings a claimed entry; afterwards the entry can be published."""
        ...


@runtime_checkable
class CopiesOwn(DataCache, Protocol):
    """A cache that can copy files of its own system."""

    async def copy_own(self, entry: str, path: str, *, is_folder: bool) -> None:
        """Copy a file or folder of the system as the content of an entry; links are followed."""
        ...


@runtime_checkable
class CachesData(Protocol):
    """A platform that has a data cache."""

    cache: int  # the cache's quota in bytes; 0: no limit

    async def open_cache(self) -> DataCache:
        """Open the platform's data cache."""
        ...


@runtime_checkable
class FetchesImages(Protocol):
    """A platform that can pull an image before a session's time begins, which the session would otherwise do itself."""

    async def find_images(self, images: Mapping[str, str]) -> Collection[str]:
        """Return which of these registry images (`docker://…` → its name in caches, if known) are already there."""
        ...

    async def fetch_image(self, location: str, tool: str, target: Path, user: str) -> bool:
        """Pull an image for a session, into the tool's store or as the file `target`, and return whether it is there.

        If not, the session tries itself.
        """
        ...


@runtime_checkable
class SendsArchives(Protocol):
    """A platform to which images are sent as archives; this machine keeps each archive once for all its sessions."""

    async def open_archives(self) -> DataCache:
        """Open the cache of these archives."""
        ...


@runtime_checkable
class ExpectsImages(Protocol):
    """A platform whose nodes are on other systems, each with its own cache of images."""

    async def expect_image(self, location: str, entry: str, user: str) -> str:
        """Restrict a session to systems that have this image cached as an entry, and return its path there."""
        ...


@runtime_checkable
class UnpacksFiles(Protocol):
    """A platform that unpacks image files of its own system before a session's time begins."""

    async def unpack_file(self, path: str, tool: str, user: str) -> Mapping[str, str]:
        """Unpack an image file once for all sessions; return link names in a session's directory → their targets.

        The result is empty if the session must unpack it itself.
        """
        ...


@runtime_checkable
class MakesImages(Protocol):
    """A platform that converts image archives of this machine for its tools before a session's time begins."""

    async def find_made(self, archives: Mapping[str, ArchiveReader]) -> Collection[str]:
        """Return the names of the archives that have already been converted."""
        ...


# Every request asks these questions of each platform. They look at the class, because isinstance on a protocol checks
# each member and takes ten times as long.


def has_cache(platform: object) -> bool:
    """Whether this is a platform that `CachesData`."""
    return hasattr(type(platform), CachesData.open_cache.__name__)


def can_fetch_images(platform: object) -> bool:
    """Whether this is a platform that `FetchesImages`."""
    return hasattr(type(platform), FetchesImages.find_images.__name__)


def can_make_images(platform: object) -> bool:
    """Whether this is a platform that `MakesImages`."""
    return hasattr(type(platform), MakesImages.find_made.__name__)


@dataclass
class EntryMemory:
    """Recent knowledge of which entries exist, so that not every request for offers asks the system."""

    seconds: float = 30.0
    _seen: dict[str, tuple[float, bool]] = field(default_factory=dict)  # entry → when checked, and whether it was there

    def note(self, entry: str, is_there: bool, now: float) -> None:
        """Remember whether an entry is there."""
        if len(self._seen) >= MOST_REMEMBERED:
            self._seen.clear()
        self._seen[entry] = now, is_there

    def recall(self, entry: str, now: float) -> bool | None:
        """Return whether an entry was there; None if nobody has looked recently."""
        when, is_there = self._seen.get(entry, (0.0, False))
        return is_there if when and now - when < self.seconds else None

    def forget(self) -> None:
        """Forget everything, because something was removed."""
        self._seen.clear()


def describe_plan(files: LinkedFiles, *, public_only: bool, largest: int, rate: int) -> dict[str, object]:
    """Describe for the system what to fetch, as JSON values; the result contains secrets."""
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
