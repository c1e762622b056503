"""What a platform with Slurm knows of its site: its settings, where sessions are kept there, and what the site has."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, ClassVar, Literal
from uuid import uuid4

from pydantic import AfterValidator, Field, PrivateAttr

from sublet.booking.model.image import ImageArchive
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.kernel.errors import LoginNeeded, PlatformRefused, PlatformUnreachable
from sublet.platforms.batch.kept import KeptFiles
from sublet.platforms.batch.remote import RemotePlatform
from sublet.platforms.port import Duration, KeptFile, Progress, Survey, quietly
from sublet.platforms.sessiondir import KEY
from sublet.platforms.slurm import commands as to
from sublet.platforms.slurm.manners import Manners
from sublet.platforms.slurm.offers import Site
from sublet.platforms.slurm.options import ALLOWED, wrong
from sublet.platforms.slurm.pace import Pace, PacedReach, pace_of
from sublet.platforms.slurm.probe import probe
from sublet.platforms.slurm.queues import open_to, partitions
from sublet.platforms.slurm.readers import SiteQueue
from sublet.platforms.slurm.survey import Surveyor
from sublet.platforms.slurm.watch import SiteWatch
from sublet.reach.record import read_record
from sublet.systems.model.pilot_config import check_lines
from sublet.systems.model.probe import Live

SIF_TOOLS = ("apptainer", "singularity")
WORD = re.compile(r"[A-Za-z0-9_][\w.+@:,&|*()\[\]-]*")


def _options(words: tuple[str, ...]) -> tuple[str, ...]:
    if found := wrong(words):
        raise ValueError("; ".join(found))
    return words


def _pilot_lines(lines: tuple[str, ...]) -> tuple[str, ...]:
    if found := check_lines(lines):
        raise ValueError("; ".join(found))
    return lines


def _name(word: str) -> str:
    if word and not WORD.fullmatch(word):
        raise ValueError(f"{word!r} can't be a name that Slurm knows")
    return word


Name = Annotated[str, AfterValidator(_name)]


class SlurmSite(RemotePlatform):
    """A cluster with Slurm, looked at."""

    kind: ClassVar[str] = "slurm"
    has_queues: ClassVar[bool] = True
    runs_mpi: ClassVar[bool] = True
    addable_options: ClassVar[frozenset[str]] = ALLOWED
    fetches: ClassVar[bool] = False  # nodes have no way out at most sites
    terms: Literal["booked", "predicted"] = Field(  # type: ignore[misc]  # elsewhere fixed, here a setting
        default="predicted",
        description="`predicted`: a queue that others share. `booked`: `reservation` or `queue` is Sublet's alone.",
    )
    queue: Name = Field(default="", description="The partition to use; empty: each that fits is asked.")
    queues: dict[str, dict[str, Name]] = Field(
        default_factory=dict, description="Queues as the centre calls them: name → the partition, the qos, or both."
    )
    project: Name = Field(default="", description="The account that pays.")
    qos: Name = Field(default="", description="The quality of service to ask for.")
    constraint: Name = Field(default="", description="Features that nodes must have.")
    reservation: Name = Field(default="", description="The reservation to run in.")
    options: Annotated[tuple[str, ...], AfterValidator(_options)] = Field(
        default=(), description="More options for sbatch, as `--licenses=matlab:1`; what Sublet says itself is refused."
    )
    pilot: Annotated[tuple[str, ...], AfterValidator(_pilot_lines)] = Field(
        default=(),
        description="Lines of HTCondor's configuration for pilots there, as `STARTER_DEBUG = D_FULLDEBUG`; pilots fetch"
        " them, also while they run. What decides whose jobs run, and who commands them, is refused.",
    )
    wckey: bool = Field(
        default=False,
        description="Whether each job's wckey names the person, as its comment does; the site must track wckeys.",
    )
    refuses: tuple[str, ...] = Field(default=(), description="Options that the site refuses, such as `mem`.")
    path: tuple[str, ...] = Field(
        default=(), description="Directories that tools are looked for in first, also by jobs; `~/` is the home there."
    )
    tool_modules: dict[str, str] = Field(
        default_factory=dict, description="Tools that are in a module, loaded by jobs that use them: name → module."
    )
    site_file: str = Field(
        default="/etc/sublet/site", description="The site's own file that lowers polling and limits; plain text."
    )
    modules: tuple[str, ...] = Field(default=(), description="Modules to load, for finding tools and in every job.")
    directory: str = Field(
        default=".sublet", description="Where sessions are kept there: below the home directory, or `$SCRATCH/sublet`."
    )
    scratch: str = Field(default="", description="A node's own disk, as `/scratch/{user}/job_{job}`; empty: TMPDIR.")
    grace: Duration = Field(
        default=timedelta(seconds=5), ge=timedelta(0), description="Time between SIGTERM and SIGKILL, also at the end."
    )
    poll: Duration = Field(
        default=timedelta(seconds=30), ge=timedelta(0), description="The least time between two calls of squeue."
    )
    look: Duration = Field(
        default=timedelta(seconds=5), ge=timedelta(0), description="The least time between two looks at jobs' records."
    )
    calls: float = Field(
        default=2,
        gt=0,
        description="How many times a second Slurm is called in the long run; 20 at once, or as its limiter allows.",
    )
    patience: Duration = Field(
        default=timedelta(seconds=30), description="How long a job's own record is waited for when Slurm says it ended."
    )
    unused: Duration = Field(
        default=timedelta(days=7), description="How long a shared file, such as an image, stays there with no session."
    )
    pulls: bool = Field(
        default=True,
        description="Whether Apptainer on the login host may fetch images of registries, else they are sent, and make "
        "images of archives that are sent, else the first session does.",
    )
    parts: int = Field(
        default=20, ge=1, le=1000, description="The most jobs of an array that one bag is cut into; 1: no arrays."
    )
    mounts: dict[str, str] = Field(
        default_factory=dict, description="What this machine sees of its file systems: path there → path here."
    )
    fresh: Duration = Field(default=timedelta(minutes=5), description="How long a survey is good for.")
    _home: Path = PrivateAttr()
    _watch: SiteWatch = PrivateAttr()
    _carried: set[str] = PrivateAttr(default_factory=set)  # sessions whose files were sent, and that aren't submitted
    _pace: Pace = PrivateAttr()
    _root: str = PrivateAttr(default="")
    _owner: str = PrivateAttr(default="")
    _surveyor: Surveyor = PrivateAttr()
    _kept: KeptFiles = PrivateAttr()
    _manners: Manners = PrivateAttr()

    async def open(self, home: Path) -> None:
        """Read what an earlier service knew; nobody is asked yet, so no login is needed."""
        self._home = home
        await asyncio.to_thread((self._home / "sessions").mkdir, mode=0o700, parents=True, exist_ok=True)
        seconds = (self.poll.total_seconds(), self.look.total_seconds(), self.patience.total_seconds())
        self._watch = SiteWatch(self.name, *seconds)
        self._pace = pace_of((self.host, self.port, self.user), self.calls)
        self._owner = await asyncio.to_thread(self._own_name)
        self._kept = KeptFiles(self.name, self._owner)
        kept = self._home / "survey.json"
        self._surveyor = await asyncio.to_thread(Surveyor, self.name, kept, self.fresh, self.site)
        self._heed()
        way = self._reach or self.way(self._home.parent.parent / "run" / "ssh")
        self._reach = PacedReach(way, self._pace)

    async def close(self) -> None:
        """Let go; jobs and a person's login stay."""
        if self._reach:
            await self._reach.close()

    def _own_name(self) -> str:
        file = self._home / "owner"
        if not file.exists():
            file.write_text(str(uuid4()))
        return file.read_text()

    async def root(self) -> str:
        """The full path of `directory` there."""
        if not self._root:
            self._root = await self.reach.run(to.to_root(self.name, self.directory))
        return self._root

    def _key(self, key: str) -> str:
        if not KEY.fullmatch(key):
            raise PlatformRefused(platform=self.name, why=f"{key!r} can't be the name of a session's directory")
        return key

    # What there is

    async def survey(self) -> Survey:
        """What Slurm shows, at most `fresh` old; without a login, what it showed last, and how long ago."""
        await self._look_around()
        site = self._surveyor.site()
        own = SchedulerOptions(queue=self.queue, project=self.project, reservation=self.reservation)
        names = partitions(site, self._queues(site, own))
        survey = self._surveyor.survey(site, names, self.reservation)
        return replace(survey, notes=(*survey.notes, *self._manners.notes))

    def expire_survey(self) -> None:
        """Ask Slurm anew at the next survey."""
        self._surveyor.expire()

    def _queues(self, site: Site, asked: SchedulerOptions) -> list[SiteQueue]:
        return open_to(site, asked.queue, asked.project, asked.reservation, self.queues)

    async def _look_around(self) -> None:
        try:
            root = await self.root()
        except (LoginNeeded, PlatformUnreachable) as error:
            self._surveyor.doubt(error)
        else:
            if self._signed_in_since():
                self._surveyor.expire()
            tools = to.where_tools_are(self.path, self.modules, self.tool_modules)
            await self._surveyor.look(self.reach, to.to_survey(root, tools, self.site_file))
            self._heed()

    def _signed_in_since(self) -> bool:
        """Whether a person has signed in after the last survey: what is open to them may have changed."""
        record = read_record(self._login.target.record) if self._login else None
        return record is not None and record.opened > self._surveyor.as_of

    def _heed(self) -> None:
        """Behave as the settings say, and as the site's own file asks."""
        own = Manners(self.poll, self.look, self.fresh, self.calls, parts=self.parts, pull=self.pulls)
        self._manners = own.lowered(self._surveyor.site_file)
        self._watch.heed(self._manners.poll.total_seconds(), self._manners.look.total_seconds())
        self._pace.heed(self._manners.calls, self._surveyor.limiter)
        self._surveyor.heed(self._manners.survey)

    async def probe(self, tools: Mapping[str, str]) -> Live:
        """Its queues, limits, nodes, accounts and tools, asked now: a login is needed."""
        return await probe(self.name, self.reach, tools)

    # Files that many sessions share

    async def keep(self, file: Path, digest: str = "", user: str = "", progress: Progress = quietly) -> str:
        """Have a file there that many share, sent once over the open login."""
        return await self._kept.keep(self.reach, await self.root(), file, digest, user and self._key(user), progress)

    async def pull(self, image: str, tool: str, user: str) -> str | None:
        """Have the login host fetch an image, where it may, and where there is Apptainer."""
        path = await self._find_sif_tool(tool)
        return await self._kept.pull(self.reach, await self.root(), image, path, self._key(user)) if path else None

    async def make_image(self, kept: str, tool: str, describe: Callable[[], ImageArchive | None]) -> bool:
        """Have the login host make it, where it may, and where there is Apptainer."""
        path = await self._find_sif_tool(tool)
        return bool(path) and await self._kept.make_image(self.reach, await self.root(), kept, path, describe)

    async def _find_sif_tool(self, tool: str) -> str:
        """Where a tool is that makes image files on the login host; empty if that may not be, or there is none."""
        path = (await self.survey()).tools.get(tool, "")
        return path if self._manners.pull and tool in SIF_TOOLS and path.startswith("/") else ""

    async def kept(self) -> Sequence[KeptFile]:
        """The shared files that are kept there."""
        return await self._kept.kept(self.reach, await self.root())

    async def let_go(self, *digests: str, idle: timedelta = timedelta(0)) -> Sequence[str]:
        """Remove shared files that no session needs, or needed for so long."""
        return await self._kept.let_go(self.reach, await self.root(), digests, idle)
