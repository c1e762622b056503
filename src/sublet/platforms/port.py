"""The interface between the service and a platform: survey it, get offers, run jobs and report their states."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Protocol, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from sublet.booking.model.amounts import parse_duration, parse_memory
from sublet.booking.model.image import ImageArchive
from sublet.booking.model.job import Job, JobState
from sublet.booking.model.offer import Answer, Node, Quote, Reason, Take
from sublet.booking.model.pledge import OPEN
from sublet.booking.model.request import Request
from sublet.kernel.container_network import USUAL
from sublet.kernel.errors import BadAmount, PlatformRefused
from sublet.platforms.metric_settings import Metrics
from sublet.platforms.pledge_settings import PledgeSettings
from sublet.reach.login import Login
from sublet.reach.unattended import Holding
from sublet.systems.model.pilot_config import Additions
from sublet.systems.model.probe import Live


def _memory(value: object) -> object:
    try:
        return parse_memory(value) if isinstance(value, str) else value
    except BadAmount as error:
        raise ValueError(error.sentences) from error


def _duration(value: object) -> object:
    try:
        return parse_duration(value) if isinstance(value, str) else value
    except BadAmount as error:
        raise ValueError(error.sentences) from error


INSTEAD = "What can't be paused can be cancelled: `sublet cancel`."
Memory = Annotated[int, BeforeValidator(_memory)]  # a setting in bytes, written as 64GiB
Duration = Annotated[timedelta, BeforeValidator(_duration)]  # a setting written as 1h30m
Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all if known


def quietly(done: int, total: int | None) -> None:
    """Ignore the progress of a transfer."""


@dataclass(frozen=True)
class Survey:
    """What a platform has, as of a time."""

    as_of: datetime
    nodes: tuple[Node, ...]
    pools: Mapping[str, int] = field(default_factory=dict)  # storage pool → bytes
    tools: Mapping[str, str] = field(default_factory=dict)  # tool → path or version, e.g. "podman": "/usr/bin/podman"
    metrics: tuple[Quote, ...] = ()  # its performance, as IVOA metrics
    notes: tuple[str, ...] = ()  # for people, e.g. "memory is limited by cgroup v1"
    contained_only: bool = False
    taken: tuple[Take, ...] = ()  # on a booked platform: the parts of nodes used by others, and nodes that are gone
    good_for: timedelta = timedelta(minutes=1)
    trouble: str = ""  # why the platform can't be surveyed now, if this survey is an older one


@dataclass(frozen=True)
class ResultFile:
    """A file among a session's results."""

    path: str  # relative to the session's working directory
    size: int
    modified: datetime


@dataclass(frozen=True)
class Results:
    """A session's results: the files in its working directory."""

    files: tuple[ResultFile, ...] = ()
    folders: tuple[str, ...] = ()  # only empty folders; the others follow from their files


@dataclass(frozen=True)
class KeptFile:
    """A file that many sessions share, as a platform keeps it."""

    digest: str  # sha256:…
    size: int
    used: datetime  # when it was last needed
    users: tuple[str, ...] = ()  # the sessions that need it now
    label: str = ""  # a name for people


class ArchiveReader(Protocol):
    """A file on this machine that may be an image archive; its methods are slow, as they read it all."""

    def find_id(self) -> str:
        """Return the ID by which an image store knows the image and all its content; empty if it isn't one."""
        ...

    def find_squashed_id(self) -> str:
        """Return the file's digest if it is a Singularity image, else an empty string."""
        ...

    def describe(self) -> ImageArchive | None:
        """Describe the archive with its digests, after checking each layer; None if the file isn't an image archive."""
        ...


@dataclass(frozen=True)
class Carrier:
    """How a separate process can access a session's directory on the platform while the session runs."""

    words: tuple[str, ...]  # the command that runs a program there; empty: the directory is local
    directory: str  # the session's directory, as that program sees it


OF_A_QUEUE = ("queue", "qos", "project")
PoolName = Annotated[str, Field(pattern="^[a-z][a-z0-9-]{0,30}$")]
PledgeName = Annotated[str, Field(pattern="^[a-z][a-z0-9-]{0,30}$")]


class Platform(BaseModel):
    """Something that can run executables. Its fields are its settings."""

    model_config = ConfigDict(extra="forbid")
    kind: ClassVar[str]
    terms: ClassVar[Literal["booked", "predicted", "remote"]]
    has_queues: ClassVar[bool] = False  # whether a request may name a queue, a quality of service and a project
    fetches: ClassVar[bool] = True  # whether jobs there can pull images from registries themselves
    carries: ClassVar[bool] = False  # whether staged data must be sent from this machine to the platform: `carry`
    tells: ClassVar[bool] = False  # whether it reports changes of jobs by itself: `news`
    is_here: ClassVar[bool] = False  # whether it is the machine that the service runs on
    runs_mpi: ClassVar[bool] = False  # whether it starts the tasks of MPI programs on their nodes by itself
    starts_each_node: ClassVar[bool] = False  # whether it starts a program on each of several nodes: `each_node`
    addable_options: ClassVar[frozenset[str]] = frozenset()  # scheduler options that a person may add to jobs
    has_places: ClassVar[bool] = False  # whether sessions there can share directories: `open_place`
    plays: ClassVar[bool] = False  # whether it only simulates jobs and runs no processes
    name: str = Field(description="What the platform is called: its name in the settings.")
    pledges: dict[PledgeName, PledgeSettings] = Field(
        default_factory=dict,
        description="Name → cores, memory, GPUs or storage for people whom a rule allows to use it; the rest is "
        "open. On predicted terms it is a cap on what runs under it at once.",
    )
    metrics: Metrics = Field(
        default_factory=dict,
        max_length=50,
        description="Its performance, as IVOA metrics: `compute-performance`, `io-throughput` (MB/s) or a URN → the "
        "least and the most, as `[150, 200]`.",
    )

    @model_validator(mode="after")
    def _pledgeable(self) -> Self:
        if self.pledges and self.terms == "remote":
            raise ValueError("another broker's platforms have no pledges here")
        if OPEN in self.pledges:
            raise ValueError(f"what is not pledged is called {OPEN}; choose another name")
        return self

    @property
    def stated_metrics(self) -> tuple[Quote, ...]:
        """The performance metrics that its settings state."""
        return tuple(Quote(name, least, most) for name, (least, most) in self.metrics.items())

    @property
    def site(self) -> str:
        """An identifier of its location, if its name may later mean another platform; empty if that never changes."""
        return ""

    @property
    def asks_a_person(self) -> bool:
        """Whether its settings say that a person must sign in to it."""
        return False

    @property
    def asleep(self) -> bool:
        """Whether it can run nothing at present, and is asked only by name; its past sessions can still be read."""
        return False

    def find_own_id(self, key: str) -> str:
        """Return the platform's own ID of a session's job, such as the ID in `squeue`; empty if it isn't known now."""
        return ""

    def serves(self, person: str) -> bool:
        """Whether this person may run sessions there."""
        return True

    def hosts(self, person: str) -> bool:
        """Whether this person is a guest of its owner: contained, and without access to the owner's files."""
        return False

    def choose_network_policy(self, is_for_stranger: bool) -> str:
        """Return the network policy for containers there; see `sublet.kernel.container_network`."""
        return USUAL

    def lets_out(self, is_for_stranger: bool) -> bool | None:
        """Whether containers there can reach outside networks; None if unknown."""
        return None

    def can_take(self, option: str) -> bool:
        """Whether a request may set this scheduler option, one of `SchedulerOptions`, and it takes effect here."""
        return self.has_queues and option in OF_A_QUEUE

    def unfit(self, request: Request) -> Sequence[Reason]:
        """Return why this platform could never run the request; one that makes its own offers says it there too."""
        return ()

    def refuse_way(self, request: Request, way: str) -> Reason | None:
        """Return why this platform could never run the request in this way, though it could in others."""
        return None

    @property
    def chains(self) -> bool:
        """Whether a job can wait in the queue until other jobs of the platform have succeeded: `Job.after`."""
        return False

    def hold_key(self, holding: Holding) -> None:
        """Set where the private key comes from while a login is opened, if it isn't a file. Call this before `open`."""

    async def open(self, home: Path) -> None:
        """Prepare the platform for use; `home` is its own directory in the service's home."""

    async def close(self) -> None:
        """Release connections and other resources; running jobs continue."""

    @property
    def login(self) -> Login | None:
        """The login that a person opens to reach the platform; None if nobody needs to sign in."""
        return None

    @abstractmethod
    async def survey(self) -> Survey:
        """Return what the platform has now."""

    def expire_survey(self) -> None:
        """Make the next survey ask the platform again, however recent the last one is."""

    async def probe(self, tools: Mapping[str, str]) -> Live:
        """Ask the system about itself now; `tools` (name → module) are looked for."""
        raise PlatformRefused(
            platform=self.name, why="it is no system with queues of its own", hint="Only systems can be probed."
        )

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """Return offers on *predicted* or *remote* terms; a *booked* platform isn't asked, as its calendar answers.

        The call is cancelled if it takes too long; it must then release anything that it holds elsewhere.
        """
        return Answer()

    @abstractmethod
    async def place(self, key: str) -> Path | None:
        """Return the session's directory, created if needed, into which movers stage data; None if none is staged."""

    async def make_storage(self, key: str, name: str, pool: str) -> None:
        """Create a session's storage in a pool, visible as `storage/NAME` in the session's directory."""

    async def carry(self, key: str, progress: Progress = quietly) -> None:
        """Send staged data from `place` to where the job will run, before it is submitted; what was sent is skipped."""

    async def session_directory(self, key: str) -> str:
        """Return the session's directory as its program will see it; data staged in `place` is below it then."""
        return str(await self.place(key) or "/")

    async def keep(self, file: Path, digest: str = "", user: str = "", progress: Progress = quietly) -> str:
        """Keep a shared file on the platform, sent once; return its path, valid while the session `user` needs it.

        Raise PlatformRefused if the file doesn't match `digest`. Without a user it stays until it has long been unused.
        """
        return str(file)

    async def pull(self, image: str, tool: str, user: str) -> str | None:
        """Pull a registry's image (`docker://NAME@sha256:…`) on the platform into a file for `tool`, once; return its
        path.

        Return None if it can't be pulled there and must be sent from here.
        """
        return None

    async def make_image(self, kept: str, tool: str, archive: ArchiveReader | None, user: str) -> bool:
        """Convert a kept archive into what `tool` runs, once for all sessions; return whether the result exists now.

        If not, the session converts it within its own time. `user` is the session that needs it; `archive` is None if
        only the platform has the archive.
        """
        return False

    async def find_image_maker(self, tool: str) -> str:
        """Return the path of a tool there that can pull or build image files; empty if there is none."""
        return ""

    async def list_kept(self) -> Sequence[KeptFile]:
        """List the shared files that the platform keeps."""
        return ()

    async def let_go(self, *digests: str, idle: timedelta = timedelta(0)) -> Sequence[str]:
        """Remove the kept files with these digests, or all, that no session has needed for `idle`; return them."""
        return ()

    async def open_place(self, path: str, scratch: str = "") -> str:
        """Return the full path of a shared directory, or raise PlatformRefused if it can't be used.

        With `scratch`, a private directory of that name is made below it, or below Sublet's own directory if `path` is
        empty.
        """
        raise PlatformRefused(platform=self.name, why="sessions there share no directory")

    async def remove_scratch(self, path: str, scratch: str) -> None:
        """Remove a scratch directory with everything in it."""
        raise PlatformRefused(platform=self.name, why="sessions there share no directory")

    async def carrier(self, key: str, program: str) -> Carrier:
        """Return how to access the session's directory through a program, given as a shell command line."""
        raise PlatformRefused(platform=self.name, why="its nodes share no file system that can be reached from here")

    @abstractmethod
    async def find(self, key: str) -> str | None:
        """Return the ID of the job that was submitted under this key, or None."""

    @abstractmethod
    async def submit(self, job: Job, key: str) -> str:
        """Submit a job once: a second call with the same key returns the same ID."""

    @abstractmethod
    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        """Return the states of many jobs at once."""

    async def news(self) -> Sequence[str] | None:
        """Return the jobs that may have changed since the last call; None if that is unknown and all must be asked."""
        return None

    @abstractmethod
    async def cancel(self, ids: Sequence[str], by: str) -> None:
        """Stop these jobs with all their processes."""

    @abstractmethod
    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of a job's time limit."""

    @property
    def additions(self) -> Additions:
        """What its settings add to every lease on it."""
        return Additions()

    async def give_back(self, id: str, nodes: Sequence[str]) -> None:
        """Release these nodes of a job, which continues on the others."""
        raise PlatformRefused(platform=self.name, why="a job there keeps all its nodes until it ends", hint=INSTEAD)

    async def pause(self, id: str) -> str:
        """Pause a job, and return how: held in its queue, or stopped where it runs."""
        raise PlatformRefused(platform=self.name, why="it has no way to pause a job", hint=INSTEAD)

    async def resume(self, id: str) -> str:
        """Resume a job, and return how; empty if it wasn't paused."""
        raise PlatformRefused(platform=self.name, why="it has no way to pause a job", hint=INSTEAD)

    @abstractmethod
    async def output(self, key: str, stream: Literal["stdout", "stderr"], offset: int, limit: int) -> bytes:
        """Return part of a session's output, while it runs or afterwards."""

    async def output_size(self, key: str, stream: Literal["stdout", "stderr"]) -> int:
        """Return the size of a session's output in bytes, by default by a binary search with single-byte reads."""
        low, high = 0, 1 << 16
        while await self.output(key, stream, high - 1, 1):
            low, high = high, high * 4
        while low < high:
            middle = (low + high) // 2
            if await self.output(key, stream, middle, 1):
                low = middle + 1
            else:
                high = middle
        return low

    @abstractmethod
    async def results(self, key: str) -> Results:
        """List the files and empty folders in a session's working directory, without staged ones."""

    @abstractmethod
    def read(self, key: str, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """Read a result file, from an offset."""

    @abstractmethod
    async def clean(self, key: str) -> None:
        """Remove everything of the session from the platform."""

    async def come_home(self, key: str) -> None:
        """Remove a guest session's files from the platform once its results are fetched; its output stays readable."""

    async def list_left(self, age: timedelta = timedelta(0)) -> Sequence[str]:
        """List this service's sessions that have had files for at least `age` on a platform where it is a guest."""
        return ()

    async def sweep(self) -> Sequence[str]:
        """Remove shared files that have long been unused, and what interrupted transfers left; return those removed."""
        return ()
