"""A request: an executable, the resources it needs, and when; a superset of IVOA's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import chain, product
from typing import Any

from sublet.booking.model.places import PlaceWish
from sublet.booking.model.scheduler import NOTHING_ASKED, SchedulerOptions
from sublet.booking.model.shape import Amounts, Shape

GIB = 1024**3
MOST_WHEREVER = 6  # how many `**/` of one pattern can also match no folder
PLAIN_COMPUTE = "simple-compute-resource"
COMPUTE_WITH_NODES = "node-compute-resource"  # also has GPUs, several windows and fractions of a GiB


@dataclass(frozen=True, slots=True)
class Range:
    """At least `min`; more is welcome up to `max`."""

    min: int
    max: int

    @staticmethod
    def exactly(number: int) -> Range:
        """Return the range of exactly this number."""
        return Range(number, number)


@dataclass(frozen=True, slots=True)
class Window:
    """When a session may begin: from `start`, and before `end`. A window always admits its own start."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Recurring:
    """Recurring windows: these weekdays, between these times of day, in a time zone."""

    days: tuple[int, ...]  # 0 is Monday
    begins: str  # "09:00"
    ends: str  # "12:00"; not after `begins` means the next day
    zone: str  # an IANA name
    until: datetime | None = None  # no window starts at or after this


@dataclass(frozen=True, slots=True)
class Volume:
    """Where the executable sees a data or storage resource."""

    name: str
    path: str  # absolute: inside a container; relative: below the working directory
    resource: str  # the name of a data or storage resource
    read_only: bool = True
    kind: str = "simple-volume-mount"


@dataclass(frozen=True, slots=True)
class Compute:
    """Nodes, and what each of them must have."""

    name: str = "compute"
    nodes: Range = Range(1, 1)
    cores: Range = Range(1, 1)  # per node
    memory: Range = Range(GIB, GIB)  # per node, in bytes
    gpus: Range = Range(0, 0)  # per node
    disk: Range = Range(0, 0)  # per node, local, in bytes
    volumes: tuple[Volume, ...] = ()
    kind: str = PLAIN_COMPUTE

    @property
    def least(self) -> Shape:
        """The minimum that each node must have."""
        return Shape(self.cores.min, self.memory.min, self.gpus.min, self.disk.min)

    @property
    def most(self) -> Shape:
        """The maximum that is welcome of each node."""
        return Shape(self.cores.max, self.memory.max, self.gpus.max, self.disk.max)

    def exactly(self, amounts: Amounts) -> Compute:
        """Return a copy that asks for exactly these amounts."""
        each = amounts.shape
        return replace(
            self,
            nodes=Range.exactly(amounts.nodes),
            cores=Range.exactly(each.cores),
            memory=Range.exactly(each.memory),
            gpus=Range.exactly(each.gpus),
            disk=Range.exactly(each.disk),
        )


@dataclass(frozen=True, slots=True)
class Storage:
    """Room for data, booked in a storage pool."""

    name: str
    size: Range  # in bytes
    data: tuple[str, ...] = ()  # names of the data that goes there
    kind: str = "simple-storage-resource"
    pool: str = ""  # only in this pool of the platform


@dataclass(frozen=True, slots=True)
class Data:
    """Data that must be staged before the executable starts."""

    name: str
    kind: str  # the short name: simple-data-resource, S3-data-resource, …
    location: str = ""
    storage: str = ""  # the name of the storage that it goes to
    size: int | None = None  # in bytes, when known
    checksum: str = ""  # "sha256:…"
    prepare: timedelta | None = None  # the asker's own estimate of the staging time
    unpack: bool = False  # it is an archive, to be unpacked
    write_back: bool = False  # what the session changed is sent back to the location
    write_back_always: bool = False  # also if the session failed
    shared: bool = False  # a read-only file: one copy on a system serves all sessions
    fields: Mapping[str, Any] = field(default_factory=dict)  # the rest, as received


@dataclass(frozen=True, slots=True)
class SentResults:
    """Results that are sent to an address when the session has ended."""

    path: str  # which results: a file, a folder, or a pattern
    to: str  # the address; a folder's if it ends in /
    always: bool = False  # also if the session failed
    source: str = ""  # of a write-back: the data whose changes are sent back

    def place(self, path: str) -> str | None:
        """Return a result's path below the address, or None if it isn't one of these results."""
        whole = self.path.strip("/")
        if path == whole:
            return path.rpartition("/")[2]
        if path.startswith(f"{whole}/"):  # also for a folder whose name looks like a pattern
            return path.removeprefix(f"{whole}/")
        if not is_pattern(whole) or not matches_pattern(path, whole):
            return None
        return path.removeprefix(find_fixed_folder(whole))


def is_pattern(path: str) -> bool:
    """Whether a path contains wildcards."""
    return any(letter in path for letter in "*?[")


def matches_pattern(path: str, pattern: str) -> bool:
    """Whether a path matches a pattern; `**/` stands for any number of folders, or none."""
    return any(fnmatchcase(path, each) for each in _spell_out(pattern))


@lru_cache(maxsize=256)
def _spell_out(pattern: str) -> tuple[str, ...]:
    """Return every variant of a pattern, with each `**/` kept or removed."""
    pieces = re.split(r"(?:(?<=/)|^)\*\*/", pattern, maxsplit=MOST_WHEREVER)
    marks = product(("", "**/"), repeat=len(pieces) - 1)
    return tuple("".join(chain(*zip(pieces, (*chosen, ""), strict=True))) for chosen in marks)


def find_fixed_folder(pattern: str) -> str:
    """Return the leading folders of a pattern that have no wildcards: `out/` of `out/*.csv`."""
    folders = pattern.split("/")[:-1]
    first = next((number for number, name in enumerate(folders) if is_pattern(name)), len(folders))
    return "".join(f"{name}/" for name in folders[:first])


@dataclass(frozen=True, slots=True)
class Executable:
    """What is to run: a kind, a name, and the fields of that kind, as received."""

    kind: str  # the short name: command, docker-container, jupyter-notebook, …
    name: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on a cost or a metric: cost at most, performance at least."""

    type: str  # a URN, as in urn:ivoa:calycopis:cost:monetary
    min: float | None = None
    max: float | None = None
    part: str = ""  # the component that it is about: compute, storage[0], …; empty: the total
    path: str = ""  # its path in the document


@dataclass(frozen=True, slots=True)
class Request:
    """Everything that is requested, with defaults filled in."""

    executable: Executable | None
    compute: Compute = Compute()
    storage: tuple[Storage, ...] = ()
    data: tuple[Data, ...] = ()
    duration: timedelta = timedelta(hours=2)
    windows: tuple[Window, ...] = ()  # none: as soon as possible
    recurring: tuple[Recurring, ...] = ()
    costs: tuple[Limit, ...] = ()
    metrics: tuple[Limit, ...] = ()
    platform: str = ""  # only this platform, when named
    scheduler: SchedulerOptions = NOTHING_ASKED  # on a shared platform: its queue, who pays, and the like
    pledge: str = ""  # on a platform with pledges: only this one, or `open`
    parts: int = 1  # the most parts that a shared queue may get it in, set by its kind
    after: tuple[str, ...] = ()  # sessions that must have completed first
    places: tuple[PlaceWish, ...] = ()  # directories of the platform that it shares with other sessions
    outputs: tuple[SentResults, ...] = ()  # results to send to an address at the end
    not_before: datetime | None = None  # when the last session in `after` is planned to end

    @property
    def is_for_each_node(self) -> bool:
        """Whether the program is to be started on each node, not only on the first."""
        return bool(self.executable and self.executable.fields.get("each_node"))

    @property
    def least(self) -> Amounts:
        """The minimum amounts that are requested."""
        return Amounts(self.compute.least, self.compute.nodes.min, self.duration)
