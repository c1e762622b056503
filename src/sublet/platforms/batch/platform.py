"""A cluster with any batch system behind SSH: everything that works through its `scheduler`.

A package for a batch system provides a `Scheduler`, and a platform with its own settings, offers and submit options. A
job's ID is its session's key; the scheduler's own number is shown beside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import PrivateAttr

from sublet.booking.model.job import Job, JobState, State
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Request
from sublet.booking.model.session import CONTINUED, HELD, RELEASED, STOPPED
from sublet.kernel.errors import LoginNeeded, PlatformRefused, PlatformUnreachable, QueueFull
from sublet.platforms.batch import commands as to
from sublet.platforms.batch.failures import Failures
from sublet.platforms.batch.fetching import FarCache
from sublet.platforms.batch.fitting import UNREACHED, find_closed
from sublet.platforms.batch.guest import GuestDirectory, own_name
from sublet.platforms.batch.job import Submission, Surroundings
from sublet.platforms.batch.kept import DIRECTORY_TOOLS, SIF_TOOLS, KeptFiles
from sublet.platforms.batch.leavings import Leavings
from sublet.platforms.batch.manners import Manners
from sublet.platforms.batch.pace import Pace, PacedReach, pace_of
from sublet.platforms.batch.scheduler import Scheduler
from sublet.platforms.batch.settings import BatchSettings
from sublet.platforms.batch.submitting import Submitter
from sublet.platforms.batch.survey import Surveyor
from sublet.platforms.batch.watch import SiteWatch
from sublet.platforms.batch.ways import place_connector
from sublet.platforms.caching import FilePut
from sublet.platforms.port import ArchiveReader, Carrier, KeptFile, Progress, Results, quietly
from sublet.platforms.sessiondir import KEY
from sublet.reach.record import read_record
from sublet.systems.model.pilot_config import Additions


class BatchPlatform(BatchSettings):
    """What all batch systems behind SSH have in common; the scheduler itself is described by one value."""

    scheduler: ClassVar[Scheduler]
    has_queues: ClassVar[bool] = True
    has_places: ClassVar[bool] = True
    carries: ClassVar[bool] = True
    fetches: ClassVar[bool] = False  # at most sites, nodes can't reach the internet
    _home: Path = PrivateAttr()
    _guest: GuestDirectory = PrivateAttr()
    _watch: SiteWatch = PrivateAttr()
    _submitter: Submitter = PrivateAttr()
    _leavings: Leavings = PrivateAttr()
    _pace: Pace = PrivateAttr()
    _surveyor: Surveyor = PrivateAttr()
    _kept: KeptFiles = PrivateAttr()
    _manners: Manners = PrivateAttr(default=Manners())
    _cache: FarCache | None = PrivateAttr(default=None)

    async def open(self, home: Path) -> None:
        """Read what an earlier run of the service saved; this makes no connection and needs no login."""
        self._home = home
        await asyncio.to_thread((home / "sessions").mkdir, mode=0o700, parents=True, exist_ok=True)
        owner = await asyncio.to_thread(own_name, home)
        seconds = (self.poll.total_seconds(), self.look.total_seconds(), self.patience.total_seconds())
        self._watch = SiteWatch(self.scheduler, self.name, *seconds)
        self._pace = pace_of((self.host, self.port, self.user), self.calls)
        self._kept = KeptFiles(self.failures, owner)
        self._surveyor = await asyncio.to_thread(
            Surveyor, self.failures, home / "survey.json", self.fresh, self.scheduler.needed, self.site
        )
        self._heed()
        reach = PacedReach(self._reach or self.way(home.parent.parent / "run" / "ssh"), self._pace)
        self._reach = reach
        self._guest = GuestDirectory(self.failures, reach, home, self.directory, owner)
        self._submitter = Submitter(self.scheduler, self.name, reach, self._guest, self._watch)
        self._leavings = Leavings(self.failures, reach, home, self._guest, self._watch)

    async def close(self) -> None:
        """Close the connection; jobs and a person's login stay."""
        if self._reach:
            await self._reach.close()

    @property
    def additions(self) -> Additions:
        """What its settings add to its pilots' configuration."""
        return Additions(lines=self.pilot)

    @property
    def failures(self) -> Failures:
        """The explanations of failures on this platform."""
        return self.scheduler.failures(self.name)

    async def root(self) -> str:
        """Return the full path of `directory` there."""
        return await self._guest.root()

    # Survey

    def expire_survey(self) -> None:
        """Ask the scheduler again at the next survey."""
        self._surveyor.expire()

    async def _look_around(self) -> None:
        """Survey the site again if necessary; without a login, use the last survey."""
        try:
            root = await self.root()
        except (LoginNeeded, PlatformUnreachable) as error:
            self._surveyor.doubt(error)
        else:
            if self._has_signed_in_since():
                self._surveyor.expire()
            tools = to.where_tools_are(self.path, self.modules, self.tool_modules)
            await self._surveyor.look(self.reach, to.to_survey(self._surveying, root, tools, self.site_file))
            self._heed()

    @property
    def _surveying(self) -> Scheduler:
        """The scheduler as this platform's settings have it surveyed."""
        return self.scheduler

    def _has_signed_in_since(self) -> bool:
        """Whether a person has signed in since the last survey, after which other things may be accessible."""
        record = read_record(self._login.target.record) if self._login else None
        return record is not None and record.opened > self._surveyor.as_of

    def _heed(self) -> None:
        """Apply the settings, as restricted by the site's own file."""
        own = Manners(
            self.poll, self.look, self.fresh, self.calls, parts=self.parts, pull=self.pulls, download=self.downloads
        )
        self._manners = own.lower(self._surveyor.site_file)
        self._watch.heed(self._manners.poll.total_seconds(), self._manners.look.total_seconds())
        self._watch.energy.is_kept = self.scheduler.counts_energy(self._surveyor.said)
        self._pace.heed(self._manners.calls, self.scheduler.read_limiter(self._surveyor.said))
        self._surveyor.heed(self._manners.survey)

    @property
    def connects(self) -> bool:
        """Whether connections to ports on its nodes are possible: through the shared login, or directly."""
        return self.shared or not self.host

    def unfit(self, request: Request) -> Sequence[Reason]:
        """Return why nobody could connect to the session, if someone is to."""
        closed = find_closed(request, self.name, self._manners.interactive, self.connects)
        return [closed] if closed else []

    # Shared files

    async def keep(self, file: Path, digest: str = "", user: str = "", progress: Progress = quietly) -> str:
        """Keep a shared file there, sent once over the open login, and return its path."""
        key = user and self._guest.check_key(user)
        return await self._kept.keep(self.reach, await self.root(), file, digest, key, progress)

    async def pull(self, image: str, tool: str, user: str) -> str | None:
        """Have the login host pull an image if that is allowed and Apptainer is there; return its path or None."""
        path = await self.find_image_maker(tool)
        key = self._guest.check_key(user)
        return await self._kept.pull(self.reach, await self.root(), image, path, key) if path else None

    async def make_image(self, kept: str, tool: str, archive: ArchiveReader | None, user: str) -> bool:
        """Have the login host convert a kept archive, if allowed: with Apptainer, or unpacked to a directory."""
        tools, describe = (await self.survey()).tools, archive.describe if archive else None
        root = await self.root()
        return self._manners.pull and await self._kept.make_for(self.reach, root, kept, tool, tools, describe)

    async def unpack_file(self, path: str, tool: str, user: str) -> Mapping[str, str]:
        """Have the login host unpack an image file of the system, if allowed, for a tool that runs directories."""
        tools, key = (await self.survey()).tools, self._guest.check_key(user)
        may = self._manners.pull and tool in DIRECTORY_TOOLS
        return await self._kept.unpack_file(self.reach, await self.root(), path, tools, key) if may else {}

    async def find_image_maker(self, tool: str) -> str:
        """Return the path of a tool on the login host that makes image files; empty if there is none to use."""
        path = (await self.survey()).tools.get(tool, "")
        return path if self._manners.pull and tool in SIF_TOOLS and path.startswith("/") else ""

    async def list_kept(self) -> Sequence[KeptFile]:
        """List the shared files that are kept there."""
        return await self._kept.list_kept(self.reach, await self.root())

    async def let_go(self, *digests: str, idle: timedelta = timedelta(0)) -> Sequence[str]:
        """Remove shared files that no session has needed for `idle`."""
        if self._cache:
            self._cache.memory.forget()
        return await self._kept.let_go(self.reach, await self.root(), digests, idle)

    async def open_cache(self) -> FarCache:
        """Open the data cache there, with the current settings."""
        if self._cache is None:
            root, owner = await self.root(), self._guest.owner
            self._cache = FarCache(self.failures, self.reach, root, owner, self._kept, self.cache, self.transfer_rate)
        self._cache.host = self.transfer_host
        self._cache.collection, self._cache.collection_root = self.globus, self.globus_root
        self._cache.why_not = "" if self._manners.download else "its login host may not fetch data"
        return self._cache

    async def send_files(self, key: str, puts: Sequence[FilePut], *, public_only: bool) -> None:
        """Have the login host or the data transfer host upload a session's results."""
        cache, directory = await self.open_cache(), await self.session_directory(key)
        await cache.send(f"{directory}/work", puts, public_only=public_only)

    async def sweep(self) -> Sequence[str]:
        """Remove shared files that have long been unused, and cache entries that exceed the quota."""
        await (await self.open_cache()).make_room(0)  # jobs of annexes add entries without making room first
        return await self.let_go(idle=self.unused)

    async def open_place(self, path: str, scratch: str = "") -> str:
        """Return the full path of a shared directory, as the login host sees it."""
        return await self.reach.run(to.to_open_place(self.failures, await self.root(), path, scratch))

    async def remove_scratch(self, path: str, scratch: str) -> None:
        """Remove someone's scratch directory there."""
        await self.reach.run(to.to_remove_scratch(self.failures, await self.root(), path, scratch))

    # Jobs

    async def place(self, key: str) -> Path | None:
        """Return the session's local directory; data staged in it is sent before the session is submitted."""
        return self._guest.place(key)

    async def session_directory(self, key: str) -> str:
        """Return the session's directory there."""
        return await self._guest.session_directory(key)

    async def carrier(self, key: str, program: str) -> Carrier:
        """Return how to access the session's files: over the person's login, or locally if mounted here."""
        directory = await self.session_directory(key)
        for there, here in sorted(self.mounts.items(), reverse=True):
            if directory.startswith(f"{there.rstrip('/')}/"):
                return Carrier((), here.rstrip("/") + directory[len(there.rstrip("/")) :])
        if not self.host:
            return Carrier((), directory)
        if self.login is None or not self.login.shared:
            why = "its centre allows no connection that stays, and this machine does not see its files"
            raise PlatformRefused(platform=self.name, why=why, hint="Name what this machine sees of them in `mounts`.")
        return Carrier(self.login.target.to_use(program), directory)

    async def carry(self, key: str, progress: Progress = quietly) -> None:
        """Send the session's files over the open login."""
        await self._guest.carry(key, progress)

    async def send(self, key: str, source: Path, relative: str, progress: Progress = quietly) -> None:
        """Send a file or directory to a session that isn't submitted yet."""
        await self._guest.send(key, source, relative, progress)

    async def find(self, key: str) -> str | None:
        """Return the key if a job was ever submitted under it, even if the scheduler no longer has it."""
        return key if await self.reach.run(to.to_find(await self.root(), self._guest.check_key(key))) else None

    def check_connects(self, job: Job) -> None:
        """Raise PlatformRefused for a job that nobody could connect to."""
        if job.program.connects and not self.connects:
            raise PlatformRefused(platform=self.name, why=UNREACHED)

    def check_room(self, key: str) -> None:
        """Raise QueueFull if the job would exceed the site's limit on sessions."""
        most = self._manners.sessions
        if most is not None and not self._watch.knows(key) and self._watch.under_way() >= most:
            raise QueueFull(platform=self.name, limit=most)

    async def submit_once(self, job: Job, key: str, submission: Submission) -> str:
        """Send staged data and submit the job once."""
        loaded = [self.tool_modules[tool] for tool in job.program.tools if tool in self.tool_modules]
        around = Surroundings(self.grace, self.path, (*self.modules, *loaded), self.scratch)
        await self._submitter.submit(job, key, submission, around)
        return key

    def find_own_id(self, key: str) -> str:
        """Return the scheduler's own number of the job."""
        return self._watch.find_number(key)

    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        """Return the states of many jobs at once."""
        keys = [id for id in ids if KEY.fullmatch(id)]
        states = await self._watch.ask(self.reach, await self.root(), keys) if keys else {}
        placed = {key: await place_connector(self.reach, key, state) for key, state in states.items()}
        return {id: placed.get(id) or JobState(State.UNKNOWN) for id in ids}

    async def cancel(self, ids: Sequence[str], by: str) -> None:
        """Have the scheduler stop these jobs; queued ones end at once."""
        keys = [self._guest.check_key(id) for id in ids]
        commands = to.to_cancel(self.scheduler, self.failures, await self.root(), keys, by or "someone")
        await self.reach.run_all(list(commands))

    async def pause(self, id: str) -> str:
        """Hold a queued job, or stop a running one by signal where users may do that."""
        return await self._pause(id, "pause", {"queued": HELD, "running": STOPPED})

    async def resume(self, id: str) -> str:
        """Release a held job, or continue a stopped one."""
        return await self._pause(id, "resume", {"queued": RELEASED, "running": CONTINUED})

    async def _pause(self, id: str, what: str, words: Mapping[str, str]) -> str:
        """Pause or resume a job, and describe the result; some parts of an array may be queued while others run."""
        if not self.scheduler.can_pause:
            return await super().pause(id)  # raises the usual refusal
        key = self._guest.check_key(id)
        done = await self.reach.run(to.to_pause(self.scheduler, self.failures, await self.root(), key, what))
        if not done:
            raise PlatformRefused(platform=self.name, why="the job is over", hint="`sublet ps` shows what runs.")
        self._watch.stir()
        return ", and in part ".join(words[each] for each in done)

    async def must_move_end(self, id: str, until: datetime) -> bool:
        """Whether a session would end before this time by its own clock."""
        state, look = (await self.ask([id]))[id], self._watch.look(self._guest.check_key(id))
        if state.state is State.ENDED or not look.claimed:
            return False
        return look.ends is None or until > look.ends + timedelta(seconds=1)

    def find_time_limit(self, id: str, leeway: timedelta) -> datetime:
        """Return when the scheduler ends a job at the latest: `leeway` after the job's own time."""
        look = self._watch.look(id)
        return (look.began or datetime.now(UTC)) + (look.lasts or timedelta(0)) + leeway

    # Output and results

    async def output(self, key: str, stream: Literal["stdout", "stderr"], offset: int, limit: int) -> bytes:
        """Return part of a session's output."""
        return await self._leavings.output(key, stream, offset, limit)

    async def output_size(self, key: str, stream: Literal["stdout", "stderr"]) -> int:
        """Return the size of a session's output."""
        size = await self._leavings.output_size(key, stream)
        return await super().output_size(key, stream) if size is None else size

    async def results(self, key: str) -> Results:
        """List the results in a session's working directory."""
        return await self._leavings.results(key)

    def read(self, key: str, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """Read a result file in pieces, from an offset."""
        return self._leavings.read(key, path, offset)

    async def clean(self, key: str) -> None:
        """Remove the session's directories, there and here; raise PlatformRefused if it still runs."""
        await self._leavings.clean(key)

    async def come_home(self, key: str) -> None:
        """Keep a local copy of the output, and remove the session from the system."""
        await self._leavings.come_home(key)

    async def list_left(self, age: timedelta = timedelta(0)) -> Sequence[str]:
        """List the sessions that this service left there at least `age` ago."""
        return await self._guest.list_left(age)
