"""What the service asks of a platform: a survey, offers, and to run jobs and tell the truth about them."""

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
    """Tell nobody how far it is."""


@dataclass(frozen=True)
class Survey:
    """What a platform has, as of a time."""

    as_of: datetime
    nodes: tuple[Node, ...]
    pools: Mapping[str, int] = field(default_factory=dict)  # storage pool → bytes
    tools: Mapping[str, str] = field(default_factory=dict)  # tool → path or version, e.g. "podman": "/usr/bin/podman"
    metrics: tuple[Quote, ...] = ()  # what it performs, as IVOA metrics
    notes: tuple[str, ...] = ()  # in words: "memory is limited by cgroup v1"
    contained_only: bool = False
    taken: tuple[Take, ...] = ()  # of a platform that is booked: what others have of its nodes, and what is no more
    good_for: timedelta = timedelta(minutes=1)
    trouble: str = ""  # why it can't be asked now, if this is what it had before


@dataclass(frozen=True)
class ResultFile:
    """A file that a session left."""

    path: str  # relative to its working directory
    size: int
    modified: datetime


@dataclass(frozen=True)
class Results:
    """What a session left in its working directory."""

    files: tuple[ResultFile, ...] = ()
    folders: tuple[str, ...] = ()  # those with nothing in them; the others are told by their files


@dataclass(frozen=True)
class KeptFile:
    """A file that many sessions share, as a platform keeps it."""

    digest: str  # sha256:…
    size: int
    used: datetime  # when it was last needed
    users: tuple[str, ...] = ()  # the sessions that need it now
    label: str = ""  # what people call it


class ArchiveReader(Protocol):
    """A file of this machine that may be an archive of an image; reading it takes a while."""

    def find_id(self) -> str:
        """What a store of images knows the image by, which covers all of it; empty: it is no archive of one."""
        ...

    def find_squashed_id(self) -> str:
        """The digest of the file, if it is a Singularity image; empty: it is none."""
        ...

    def describe(self) -> ImageArchive | None:
        """What it is and which digests it has, each layer checked; None if it is no archive of an image."""
        ...


@dataclass(frozen=True)
class Carrier:
    """How a process of its own gets at a session's directory there while it runs."""

    words: tuple[str, ...]  # what runs a program there, with a channel to it; empty: the directory is seen from here
    directory: str  # the session's directory, as it is seen from where the program runs


OF_A_QUEUE = ("queue", "qos", "project")
PoolName = Annotated[str, Field(pattern="^[a-z][a-z0-9-]{0,30}$")]
PledgeName = Annotated[str, Field(pattern="^[a-z][a-z0-9-]{0,30}$")]


class Platform(BaseModel):
    """Something that can run executables. Its fields are its settings."""

    model_config = ConfigDict(extra="forbid")
    kind: ClassVar[str]
    terms: ClassVar[Literal["booked", "predicted", "remote"]]
    has_queues: ClassVar[bool] = False  # whether a request may name a queue, a quality of service and a project
    fetches: ClassVar[bool] = True  # whether what runs there can fetch images from registries by itself
    carries: ClassVar[bool] = False  # whether what was brought is sent from this machine to where it runs: `carry`
    tells: ClassVar[bool] = False  # whether it has news of its own, and so is listened to
    is_here: ClassVar[bool] = False  # whether it is the machine that the service runs on
    runs_mpi: ClassVar[bool] = False  # whether it starts the tasks of MPI programs on their nodes by itself
    starts_each_node: ClassVar[bool] = False  # whether it starts a program on each of several nodes: `each_node`
    addable_options: ClassVar[frozenset[str]] = frozenset()  # of its scheduler: those that a person may add to jobs
    has_places: ClassVar[bool] = False  # whether sessions there can share directories: `open_place`
    plays: ClassVar[bool] = False  # whether it only plays: no process is run
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
        """What its settings say that it performs."""
        return tuple(Quote(name, least, most) for name, (least, most) in self.metrics.items())

    @property
    def site(self) -> str:
        """Where it is, as far as others may come to be there under the same name; empty: always in the same place."""
        return ""

    @property
    def asks_a_person(self) -> bool:
        """Whether a person must sign in to it, by what its settings say."""
        return False

    @property
    def asleep(self) -> bool:
        """Whether it can run nothing at present, and is asked only by name; what ran there can be looked at."""
        return False

    def find_own_id(self, key: str) -> str:
        """What the platform itself calls the job of a session, as far as that is known now: the id in `squeue`."""
        return ""

    def serves(self, person: str) -> bool:
        """Whether this person may run something there."""
        return True

    def hosts(self, person: str) -> bool:
        """Whether this person is there at its owner's invitation: contained, and without the owner's files."""
        return False

    def choose_network_policy(self, is_for_stranger: bool) -> str:
        """What network containers may have there; see `sublet.container_network`."""
        return USUAL

    def lets_out(self, is_for_stranger: bool) -> bool | None:
        """Whether containers there have a network that leads out; None: nobody knows."""
        return None

    def can_take(self, option: str) -> bool:
        """Whether a request may say this scheduler option here, so that it counts: one of `SchedulerOptions`."""
        return self.has_queues and option in OF_A_QUEUE

    def unfit(self, request: Request) -> Sequence[Reason]:
        """What it could never run, whatever its calendar says; who answers with offers says so there too."""
        return ()

    @property
    def chains(self) -> bool:
        """Whether a job can wait in its queue until other jobs of the platform have ended well: `Job.after`."""
        return False

    def hold_key(self, holding: Holding) -> None:
        """Sign in with a key that is no file: this holds it while a login is being opened. Before it is opened."""

    async def open(self, home: Path) -> None:
        """Get ready; `home` is a directory of the service's own, for this platform."""

    async def close(self) -> None:
        """Let go; what runs goes on."""

    @property
    def login(self) -> Login | None:
        """The login that a person opens to what is behind it; None: nobody needs to sign in."""
        return None

    @abstractmethod
    async def survey(self) -> Survey:
        """What there is now."""

    def expire_survey(self) -> None:
        """Something has changed there: the next survey asks anew, however new the last one is."""

    async def probe(self, tools: Mapping[str, str]) -> Live:
        """What the system behind it says of itself, asked now; `tools` (name → module) are looked for."""
        raise PlatformRefused(
            platform=self.name, why="it is no system with queues of its own", hint="Only systems can be probed."
        )

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """Offers on *predicted* or *remote* terms; a *booked* platform is never asked: the calendar answers.

        It is cancelled if it takes too long: what it holds for the asker elsewhere by then, it gives back.
        """
        return Answer()

    @abstractmethod
    async def place(self, key: str) -> Path | None:
        """The session's directory, made if need be, where movers bring its data; None: nothing is to be brought."""

    async def make_storage(self, key: str, name: str, pool: str) -> None:
        """Make a session's storage where a pool keeps it, seen at `storage/NAME` of the session's directory."""

    async def carry(self, key: str, progress: Progress = quietly) -> None:
        """Send what was brought to `place` to where it will run, before it is submitted; what was sent isn't again."""

    async def session_directory(self, key: str) -> str:
        """The session's directory as its program will see it: what was brought to `place` is below it then."""
        return str(await self.place(key) or "/")

    async def keep(self, file: Path, digest: str = "", user: str = "", progress: Progress = quietly) -> str:
        """Have a file there that many share, sent once; its path there, good while the session `user` is there.

        With a digest it is that file, or PlatformRefused. Without a user it stays until it is long unused.
        """
        return str(file)

    async def pull(self, image: str, tool: str, user: str) -> str | None:
        """Have an image of a registry (`docker://NAME@sha256:…`) there as a file for `tool`, fetched once; its path.

        None: it can't be fetched from there, so it must be brought.
        """
        return None

    async def make_image(self, kept: str, tool: str, archive: ArchiveReader | None, user: str) -> bool:
        """Have what `tool` runs made of an archive that is kept there, once for all; whether that is there now.

        Else a session makes it, within its time. `user` is the session that needs it; None: only the platform has the
        archive.
        """
        return False

    async def find_image_maker(self, tool: str) -> str:
        """Where a tool is there that pulls images of registries into files, or makes them; empty: there is no way."""
        return ""

    async def list_kept(self) -> Sequence[KeptFile]:
        """The shared files that are kept there."""
        return ()

    async def let_go(self, *digests: str, idle: timedelta = timedelta(0)) -> Sequence[str]:
        """Remove those of them (none named: of all) that no session needs, or needed for so long; which they were."""
        return ()

    async def open_place(self, path: str, scratch: str = "") -> str:
        """The full path of a directory there that sessions share, or PlatformRefused if it can't be used.

        A directory for `scratch` is made below it, which nobody else can enter; without a path, below Sublet's own.
        """
        raise PlatformRefused(platform=self.name, why="sessions there share no directory")

    async def remove_scratch(self, path: str, scratch: str) -> None:
        """Remove such a directory with all that is in it."""
        raise PlatformRefused(platform=self.name, why="sessions there share no directory")

    async def carrier(self, key: str, program: str) -> Carrier:
        """How to get at the session's directory with a program, given as a line for the shell there."""
        raise PlatformRefused(platform=self.name, why="its nodes share no file system that can be reached from here")

    @abstractmethod
    async def find(self, key: str) -> str | None:
        """The job that was submitted under this key, if there is one."""

    @abstractmethod
    async def submit(self, job: Job, key: str) -> str:
        """Start it, once: a second call with the same key returns the same job."""

    @abstractmethod
    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        """The states of many jobs at once."""

    async def news(self) -> Sequence[str] | None:
        """Jobs that may have changed since the last call; None: it can't tell, ask them all."""
        return None

    @abstractmethod
    async def cancel(self, ids: Sequence[str], by: str) -> None:
        """Stop them, with all their processes."""

    @abstractmethod
    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of a job's time."""

    @property
    def additions(self) -> Additions:
        """What its settings add to every lease there."""
        return Additions()

    async def give_back(self, id: str, nodes: Sequence[str]) -> None:
        """Go on with fewer nodes: these are not needed any more."""
        raise PlatformRefused(platform=self.name, why="a job there keeps all its nodes until it ends", hint=INSTEAD)

    async def pause(self, id: str) -> str:
        """Let a job stand still for a while, and say how: held in its queue, or stopped where it runs."""
        raise PlatformRefused(platform=self.name, why="it has no way to pause a job", hint=INSTEAD)

    async def resume(self, id: str) -> str:
        """Let it go on, and say how; nothing, if it was not paused."""
        raise PlatformRefused(platform=self.name, why="it has no way to pause a job", hint=INSTEAD)

    @abstractmethod
    async def output(self, key: str, stream: Literal["stdout", "stderr"], offset: int, limit: int) -> bytes:
        """Part of what it printed; works while it runs and after."""

    async def output_size(self, key: str, stream: Literal["stdout", "stderr"]) -> int:
        """How many bytes it has printed; found by reading single bytes, where a platform has no better way."""
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
        """The files in its working directory, and the folders in which there are none; not what was brought."""

    @abstractmethod
    def read(self, key: str, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """One of those files, from a byte on."""

    @abstractmethod
    async def clean(self, key: str) -> None:
        """Remove all that the session left here."""

    async def come_home(self, key: str) -> None:
        """Its results were fetched: where it was a guest nothing of it stays; what it printed can still be read."""

    async def list_left(self, age: timedelta = timedelta(0)) -> Sequence[str]:
        """The sessions of this service that have had something there for so long, where it is a guest."""
        return ()

    async def sweep(self) -> Sequence[str]:
        """Remove shared files that no session has needed for long, and what was cut off half way; which files."""
        return ()
