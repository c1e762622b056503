"""What a person asks for: an executable, the resources it needs, and when. A superset of IVOA's."""

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
MOST_WHEREVER = 6  # times that `**/` of one pattern stands for no folder, too
PLAIN_COMPUTE = "simple-compute-resource"
COMPUTE_WITH_NODES = "node-compute-resource"  # with GPUs, several windows and parts of a GiB too


@dataclass(frozen=True, slots=True)
class Range:
    """At least `min`; more is welcome up to `max`."""

    min: int
    max: int

    @staticmethod
    def exactly(number: int) -> Range:
        """This, and neither less nor more."""
        return Range(number, number)


@dataclass(frozen=True, slots=True)
class Window:
    """When a session may begin: from `start`, and before `end`. A window always admits its own start."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class Recurring:
    """Windows that come again: these weekdays, between these times of day, in a zone."""

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
    disk: Range = Range(0, 0)  # per node, of its own, in bytes
    volumes: tuple[Volume, ...] = ()
    kind: str = PLAIN_COMPUTE

    @property
    def least(self) -> Shape:
        """What each node must have."""
        return Shape(self.cores.min, self.memory.min, self.gpus.min, self.disk.min)

    @property
    def most(self) -> Shape:
        """What is welcome of each node."""
        return Shape(self.cores.max, self.memory.max, self.gpus.max, self.disk.max)

    def exactly(self, amounts: Amounts) -> Compute:
        """The same for neither less nor more than these amounts."""
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
    pool: str = ""  # only in this pool of a platform


@dataclass(frozen=True, slots=True)
class Data:
    """Something that must be there before the executable starts."""

    name: str
    kind: str  # the short name: simple-data-resource, S3-data-resource, …
    location: str = ""
    storage: str = ""  # the name of the storage that it goes to
    size: int | None = None  # in bytes, when known
    checksum: str = ""  # "sha256:…"
    prepare: timedelta | None = None  # the asker's own estimate
    unpack: bool = False  # it is an archive, and its content is what is wanted
    write_back: bool = False  # what the session changed of it goes to where it came from
    write_back_always: bool = False  # also when it failed
    shared: bool = False  # a file that is only read: one copy on a system serves all who need it
    fields: Mapping[str, Any] = field(default_factory=dict)  # the rest, as received


@dataclass(frozen=True, slots=True)
class SentResults:
    """Results that are sent somewhere when the session has ended."""

    path: str  # which of them: a file, a folder, or a pattern
    to: str  # the address; of a folder, if it ends in /
    always: bool = False  # also when it failed
    source: str = ""  # the data that goes back to where it came from, as far as it was changed

    def place(self, path: str) -> str | None:
        """Where a result goes below the address, if it is one of these: its path below what the pattern names whole."""
        whole = self.path.strip("/")
        if path == whole:
            return path.rpartition("/")[2]
        if path.startswith(f"{whole}/"):  # also of a folder whose name looks like a pattern
            return path.removeprefix(f"{whole}/")
        if not is_pattern(whole) or not matches_pattern(path, whole):
            return None
        return path.removeprefix(find_fixed_folder(whole))


def is_pattern(path: str) -> bool:
    """Whether a path stands for many."""
    return any(letter in path for letter in "*?[")


def matches_pattern(path: str, pattern: str) -> bool:
    """Whether a path fits; `**/` stands for any number of folders, none of them too."""
    return any(fnmatchcase(path, each) for each in _spell_out(pattern))


@lru_cache(maxsize=256)
def _spell_out(pattern: str) -> tuple[str, ...]:
    """The pattern with each `**/` as it is, and without it."""
    pieces = re.split(r"(?:(?<=/)|^)\*\*/", pattern, maxsplit=MOST_WHEREVER)
    marks = product(("", "**/"), repeat=len(pieces) - 1)
    return tuple("".join(chain(*zip(pieces, (*chosen, ""), strict=True))) for chosen in marks)


def find_fixed_folder(pattern: str) -> str:
    """The folders that a pattern names whole: `out/` of `out/*.csv`."""
    folders = pattern.split("/")[:-1]
    first = next((number for number, name in enumerate(folders) if is_pattern(name)), len(folders))
    return "".join(f"{name}/" for name in folders[:first])


@dataclass(frozen=True, slots=True)
class Executable:
    """The thing itself: a kind, a name, and the fields of that kind, as received."""

    kind: str  # the short name: command, docker-container, jupyter-notebook, …
    name: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limit:
    """A bound on a cost or a metric: cost at most, performance at least."""

    type: str  # a URN, as in urn:ivoa:calycopis:cost:monetary
    min: float | None = None
    max: float | None = None
    part: str = ""  # the component that it is about: compute, storage[0], …; none: all of them together
    path: str = ""  # where it stands in the document


@dataclass(frozen=True, slots=True)
class Request:
    """Everything asked for, read and with defaults filled in."""

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
    scheduler: SchedulerOptions = NOTHING_ASKED  # of a shared platform: its queue, who pays, and the like
    pledge: str = ""  # of a platform with pledges: only this one, or what is `open`
    parts: int = 1  # into how many parts a shared queue may get it, at most: its kind says that
    after: tuple[str, ...] = ()  # sessions that must have completed first
    places: tuple[PlaceWish, ...] = ()  # directories of the platform that it shares with other sessions
    outputs: tuple[SentResults, ...] = ()  # results that are sent somewhere at the end
    not_before: datetime | None = None  # when the last of those is planned to have ended

    @property
    def is_for_each_node(self) -> bool:
        """Whether its program is to be started on each of its nodes, not on the first alone."""
        return bool(self.executable and self.executable.fields.get("each_node"))

    @property
    def least(self) -> Amounts:
        """The least that it can do with."""
        return Amounts(self.compute.least, self.compute.nodes.min, self.duration)
