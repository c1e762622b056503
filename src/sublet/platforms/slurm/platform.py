"""Slurm, by its own command line: sbatch, squeue, scancel; here, or on a machine that is reached over OpenSSH.

Nothing is installed there. Below `directory` on the system lie

    sessions/KEY/   one session: work/, data/, stdout, stderr, and its job's records (told in shell/job.sh)
    incoming/KEY/   data that was sent before the session was submitted
    kept/           files that many sessions share (told in kept.py)
    trash/          what is being removed

and below the platform's own directory here `sessions/KEY/`, where movers bring data before it is sent. A job's id is
its session's key, which is also its name in the queue: Slurm's own number is shown beside it.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

from sublet.booking.model.job import Job, JobState, State
from sublet.booking.model.offer import Answer, Offer, Reason
from sublet.booking.model.phases import Phase
from sublet.booking.model.request import Request
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.session import CONTINUED, HELD, RELEASED, STOPPED
from sublet.kernel.errors import LoginNeeded, NotFound, PlatformRefused, PlatformUnreachable, QueueFull
from sublet.platforms.batch.shell import inside, life
from sublet.platforms.port import Carrier, Progress, Results, quietly
from sublet.platforms.sessiondir import KEY, remove_tree
from sublet.platforms.slurm import commands as to
from sublet.platforms.slurm import offers as offering
from sublet.platforms.slurm import readers as read
from sublet.platforms.slurm.home import Fetched
from sublet.platforms.slurm.job import far, packed, program
from sublet.platforms.slurm.offers import Site
from sublet.platforms.slurm.options import SlurmAccount, SlurmWish, comment, flags, option_name, refusals, wckey
from sublet.platforms.slurm.site import WORD, SlurmSite
from sublet.platforms.slurm.ways import placed
from sublet.reach.files import to_sizes
from sublet.systems.model.pilot_config import Additions

CHUNK = 1 << 22
LAST_RESORT = "podman"  # its store is in the home, which nodes share
UNREACHED = "it allows no connection that is shared, so that nothing can stay connected to a node of it"


class Slurm(SlurmSite):
    """A cluster with Slurm."""

    # Offers

    @property
    def _connects(self) -> bool:
        """Whether someone can be connected to what listens on its nodes: by the shared login, or from here."""
        return self.shared or not self.host

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """One offer for each queue that fits, at the time that Slurm plans; or each queue's reason."""
        if offering.listens(request) and not self._manners.interactive:
            said = f"{self.name}: the site's own settings allow no interactive sessions."
            return Answer(reasons=(Reason("urn:not-supported", "executable.kind", said, platform=self.name),))
        if offering.listens(request) and not self._connects:
            no = Reason("urn:not-supported", "executable.kind", f"{self.name}: {UNREACHED}.", platform=self.name)
            return Answer(reasons=(no,))
        await self._look_around()
        site = self._surveyor.site()
        account = self._account(request.scheduler)
        named = account.asked.queue
        queues = self._queues(site, account.asked)
        if not queues:
            names = ", ".join(self.queues or [one.name for one in site.queues])
            said = f"{self.name} has no queue {named} that can be used; it has: {names}."
            return Answer(reasons=(Reason("urn:not-supported", "platform", said, nearest=names, platform=self.name),))
        wishes, reasons = offering.fitting(request, site, queues, self.name, offering.beginning(request, now))
        wishes = [wish.cut(self._parts(request, wish, site, account)) for wish in wishes]
        way = min(ways, key=lambda name: name == LAST_RESORT)
        asks, note = offering.asks_for(request, wishes, now), offering.UNASKED
        asked = asks[: offering.MOST_PLANS]
        try:
            plans = await self.reach.run_all([to.to_plan(flags(ask.wish, account)) for ask in asked])
        except LoginNeeded:
            plans, note = [], f"; as seen on {site.as_of:%Y-%m-%d %H:%M} UTC"
        found = [self._offer(ask, plan, way, site, now) for ask, plan in zip(asked, plans, strict=False)]
        for wanted, wish, why in asks[len(plans) :]:
            found.append(offering.offer_for(wanted, wish, now, way, self.name, now, note, why))
        reasons += [one for one in found if isinstance(one, Reason)]
        return offering.answer([one for one in found if isinstance(one, Offer)], reasons)

    def _parts(self, request: Request, wish: SlurmWish, site: Site, account: SlurmAccount) -> int:
        """In how many parts: as many as the kind wants, the settings allow, and the site takes."""
        most = offering.most_parts(site, wish.partition or wish.queue, account, self._watch.count())
        return min(request.parts, self._manners.parts, most)

    def _offer(self, ask: offering.Ask, plan: Any, way: str, site: Site, now: datetime) -> Offer | Reason:
        words = plan.stderr.decode("utf-8", "replace")
        planned = read.read_plan(words)
        if planned:
            return offering.offer_for(ask.request, ask.wish, planned, way, self.name, now, why=ask.why)
        if isinstance(failure := to.trouble(self.name, plan), PlatformUnreachable):
            raise failure
        return offering.refusal(ask.wish, words, site, self.name, now)

    def unfit(self, request: Request) -> Sequence[Reason]:
        """What the site refuses of what is asked of its scheduler, and what can't be had beside a calendar."""
        asked = request.scheduler if request.scheduler.queue != self.queue else replace(request.scheduler, queue="")
        found = refusals(asked, self.refuses, is_booked=self.terms == "booked")
        return [
            Reason("urn:not-supported", field, f"{self.name}: {field}: {why}.", nearest=f"leave {field} out")
            for field, why in found
        ]

    def can_take(self, option: str) -> bool:
        """All that sbatch takes."""
        return True

    def _account(self, asked: SchedulerOptions) -> SlurmAccount:
        """What every job says beside its own amounts; what a request names stands before the settings."""
        for word in (asked.project, asked.qos):
            if word and not WORD.fullmatch(word):
                raise PlatformRefused(platform=self.name, why=f"{word!r} can't be a name that Slurm knows")
        qos = self.queues.get(asked.queue or self.queue, {}).get("qos", "") or self.qos
        usual = SchedulerOptions(self.queue, qos, self.project, self.constraint, reservation=self.reservation)
        mine = {name for name, _ in asked.words()}
        options = tuple(word for word in self.options if option_name(word) not in mine)
        return SlurmAccount(asked.over(usual), options, self.refuses)

    # Jobs

    @property
    def chains(self) -> bool:
        """Slurm waits by itself, and what waits there grows old in the queue; unless the site refuses that."""
        return "dependency" not in self.refuses

    async def _ids(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Slurm's own ids of jobs that have not ended well yet."""
        states = await self.ask(keys) if keys else {}
        ends = {key: states[key].end for key in keys}
        left = [key for key, end in ends.items() if end is None or end.phase is not Phase.COMPLETED]
        ids = {key: self._watch.find_number(key) for key in left}
        for key in (key for key, id in ids.items() if not id):
            raise PlatformUnreachable(platform=self.name, why=f"the number of the Slurm job {key} is not known yet")
        return tuple(ids.values())

    async def place(self, key: str) -> Path | None:
        """The session's directory here: what is brought to it is sent at submit."""
        place = self._home / "sessions" / self._key(key)
        for path in (place, place / "work", place / "data"):
            path.mkdir(mode=0o700, exist_ok=True)
        return place

    async def session_directory(self, key: str) -> str:
        """The session's directory there."""
        return f"{await self.root()}/sessions/{self._key(key)}"

    async def carrier(self, key: str, program: str) -> Carrier:
        """Over the person's own login; or by itself, where this machine sees the same files."""
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
        for part in ("data", "storage", "work"):
            source = self._home / "sessions" / self._key(key) / part
            if await asyncio.to_thread(_holds_files, source):
                await self.send(key, source, part, progress)
        self._carried.add(key)

    async def send(self, key: str, source: Path, relative: str, progress: Progress = quietly) -> None:
        """Bring a file or directory to a session that is not submitted yet."""
        root = await self.root()
        target = f"{root}/incoming/{self._key(key)}/{inside(relative, self.name)}"
        await self.reach.run(to.to_incoming(self.name, root, key, self._owner))
        await self.reach.send(source, target, progress)

    async def find(self, key: str) -> str | None:
        """The job of this key, once it was claimed: whether Slurm has it or not, it isn't submitted again."""
        return key if await self.reach.run(to.to_find(await self.root(), self._key(key))) else None

    async def submit(self, job: Job, key: str) -> str:
        """Send what was brought, then submit, in one exec."""
        if job.program.connects and not self._connects:
            raise PlatformRefused(platform=self.name, why=UNREACHED)
        root = await self.root()
        wish = await self._wish(job, key)
        self._check_room(key)
        contents = self._files(job, self._key(key), wish)
        if key not in self._carried:
            await self.carry(key)
        words = (
            *flags(wish, self._account(job.scheduler)),
            *(("--no-kill",) if job.program.outlives_nodes else ()),
            f"--output={root.replace('%', '%%')}/sessions/{key}/{'slurm-%a' if job.parts > 1 else 'slurm'}.log",
        )
        outcome = await self.reach.run(to.to_submit(root, key, (*words, "--open-mode=append"), packed(contents)))
        self._check_submitted(outcome)
        if outcome.text.split()[:1] != ["known"] or not self._watch.knows(key):
            self._watch.submitted(
                key, outcome.text.split()[-1], job.parts
            )  # what was seen before is what it was before
        self._carried.discard(key)
        await asyncio.to_thread(remove_tree, self._home / "sessions" / key)
        return key

    def find_own_id(self, key: str) -> str:
        """Slurm's own number of the job."""
        return self._watch.find_number(key)

    def _check_room(self, key: str) -> None:
        most = self._manners.sessions
        if most is not None and not self._watch.knows(key) and self._watch.under_way() >= most:
            raise QueueFull(platform=self.name, limit=most)

    def _check_submitted(self, outcome: Any) -> None:
        if outcome.code == 76:
            why = f"it may or may not have taken the job: {outcome.complaint}"
            raise PlatformUnreachable(platform=self.name, why=why)
        if outcome.code:
            raise to.trouble(self.name, outcome)

    async def _wish(self, job: Job, key: str) -> SlurmWish:
        await self._look_around()
        site = self._surveyor.site()
        queues = self._queues(site, self._account(job.scheduler).asked)
        wish = offering.wish_of(job, site, queues, self.name, datetime.now(UTC))
        who = wckey(job.person) if self.wckey else ""
        said = comment(job.person, job.name, key)
        return replace(wish, after=await self._ids(job.after), comment=said, wckey=who)

    def _files(self, job: Job, key: str, wish: SlurmWish) -> dict[str, bytes]:
        """What is written into the session's directory."""
        try:
            loaded = [self.tool_modules[tool] for tool in job.program.tools if tool in self.tool_modules]
            modules = (*self.modules, *loaded)
            text = program(job, key, wish, grace=self.grace, path=self.path, modules=modules, scratch=self.scratch)
        except ValueError as error:
            raise PlatformRefused(platform=self.name, why=str(error)) from error
        for path in (*(mount.source for mount in job.mounts), *job.kept):
            inside(path, self.name, "the session's directory")
        files = {f"work/{inside(name, self.name)}": data for name, data in job.program.files.items()}
        own = {
            "job.sh": far("job"),
            "life.sh": life(),
            "program": text,
            "owner": f"{self._owner}\n",
            "duration": f"{wish.seconds}\n",
        }
        if job.parts > 1:
            own["parts"] = f"{job.parts}\n"
        return files | {name: content.encode("utf-8", "surrogateescape") for name, content in own.items()}

    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        """The states of many jobs at once."""
        keys = [id for id in ids if KEY.fullmatch(id)]
        states = await self._watch.ask(self.reach, await self.root(), keys) if keys else {}
        found = {key: await placed(self.reach, key, state) for key, state in states.items()}
        return {id: found.get(id) or JobState(State.UNKNOWN) for id in ids}

    async def cancel(self, ids: Sequence[str], by: str) -> None:
        """Have Slurm stop them; those that wait end at once."""
        root = await self.root()
        keys = [self._key(id) for id in ids]
        await self.reach.run_all(list(to.to_cancel(self.name, root, keys, by or "someone")))

    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of its time, if Slurm's own limit leaves room for it, or lets itself be moved."""
        root = await self.root()
        state = (await self.ask([id]))[id]
        look = self._watch.look(id)
        if state.state is State.ENDED or not look.claimed or (look.ends and until <= look.ends + timedelta(seconds=1)):
            return
        rows = await self.reach.run(to.to_limit(self._key(id)))
        starts = [row.start for row in rows if row.start and row.end and until + self.grace > row.end]
        minutes = -(-(until + timedelta(minutes=1) - min(starts)) // timedelta(minutes=1)) if starts else 0
        await self.reach.run_all(to.to_extend(self.name, root, id, round(until.timestamp()), minutes))

    @property
    def additions(self) -> Additions:
        """Options for sbatch, and lines of its pilots' configuration."""
        return Additions(self.options, self.pilot)

    async def give_back(self, id: str, nodes: Sequence[str]) -> None:
        """Have Slurm take back some of its nodes; the first, which carries the others, stays."""
        await self._pace.take()
        await self.reach.run(to.to_give_back(self.name, await self.root(), self._key(id), nodes))
        self._watch.stir()

    async def pause(self, id: str) -> str:
        """What waits is held, what runs gets the stop signal: both are a user's right."""
        return await self._pause(id, "pause", {"queued": HELD, "running": STOPPED})

    async def resume(self, id: str) -> str:
        """What was held is released, what was stopped gets the signal to go on."""
        return await self._pause(id, "resume", {"queued": RELEASED, "running": CONTINUED})

    async def _pause(self, id: str, what: str, words: Mapping[str, str]) -> str:
        """Some parts of an array may wait while others run: then both is said."""
        done = await self.reach.run(to.to_pause(self.name, await self.root(), self._key(id), what))
        if not done:
            raise PlatformRefused(platform=self.name, why="the job is over", hint="`sublet ps` shows what runs.")
        self._watch.stir()
        return ", and in part ".join(words[each] for each in done)

    # What they leave

    async def output(self, key: str, stream: Literal["stdout", "stderr"], offset: int, limit: int) -> bytes:
        """Part of what it printed; of several parts, while they run, of the first that runs and those before it."""
        if (fetched := self._fetched(key)).there:
            return await asyncio.to_thread(fetched.output, stream, offset, limit)
        path = f"{await self.session_directory(key)}/{stream}"
        look = self._watch.look(key)
        try:
            if look.parts == 1 or look.joined:
                return await self.reach.read(path, offset, limit)
        except PlatformRefused:
            if look.claimed:
                return b""  # it has printed nothing yet, or was cleaned away
        return await self.reach.run(to.to_output(await self.root(), key, stream, offset, limit))

    async def output_size(self, key: str, stream: Literal["stdout", "stderr"]) -> int:
        """How much it has printed: asked for once, where it is one file."""
        if (fetched := self._fetched(key)).there:
            return await asyncio.to_thread(fetched.output_size, stream)
        look, path = self._watch.look(key), f"{await self.session_directory(key)}/{stream}"
        if look.parts == 1 or look.joined:
            return (await self.reach.run(to_sizes([path]))).get(path, 0)
        return await super().output_size(key, stream)

    async def results(self, key: str) -> Results:
        """What is in its working directory."""
        self._fetched(key).check()
        return await self.reach.run(to.to_results(await self.root(), self._key(key)))

    async def read(self, key: str, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """One of those files, in pieces, from a byte on."""
        self._fetched(key).check()
        relative = inside(path, self.name)
        root = await self.root()
        while piece := await self.reach.run(to.to_result(root, self._key(key), relative, offset, CHUNK)):
            yield piece
            offset += len(piece)
        if piece is None:
            raise NotFound(noun="result", name=path, hint="`sublet result` lists the files that there are.")

    async def clean(self, key: str) -> None:
        """Remove the session's directories, there and here; what still runs must be cancelled first."""
        fetched = self._fetched(key)
        if not fetched.there:
            await self._clean_there(key)
        await asyncio.to_thread(fetched.forget)
        await asyncio.to_thread(shutil.rmtree, self._home / "sessions" / key, ignore_errors=True)

    async def _clean_there(self, key: str) -> None:
        state = (await self.ask([self._key(key)]))[key]
        if state.state in (State.RUNNING, State.QUEUED):
            raise PlatformRefused(platform=self.name, why="the session still runs", hint="Cancel it first.")
        await self.reach.run(to.to_clean(self.name, await self.root(), key))
        self._watch.cleaned(key)

    async def come_home(self, key: str) -> None:
        """Keep what it printed here, and remove the rest there."""
        fetched = self._fetched(key)
        if not fetched.there:
            await fetched.take(partial(self.output, key))
            await self._clean_there(key)

    async def left(self, age: timedelta = timedelta(0)) -> Sequence[str]:
        """The sessions that this service left there so long ago."""
        found = await self.reach.run(to.to_sweep(self.name, await self.root(), self._owner, age))
        return [key for key in dict.fromkeys(found) if KEY.fullmatch(key)]

    async def sweep(self) -> Sequence[str]:
        """Let go of shared files that were not needed for long."""
        return await self.let_go(idle=self.unused)

    def _fetched(self, key: str) -> Fetched:
        return Fetched(self._home, self.name, self._key(key))


def _holds_files(directory: Path) -> bool:
    return directory.is_dir() and any(directory.iterdir())
