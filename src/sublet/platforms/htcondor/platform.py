"""HTCondor, by its own command line: a pool, or an annex seen through its id.

The tools run here, at the access point. Below the platform's own directory lie

    sessions/KEY/   one session (told in htcondor_session.py)
    running/KEY     a mark for each session that has not ended
    trash/          what is being removed

A job's id is its session's key. HTCondor's own log in the session's directory says what became of it, so that the
access point is asked only when it is told something, and now and then whether it still has what should be there.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, PrivateAttr

from sublet.booking.model.job import Job, JobState, State
from sublet.booking.model.offer import Answer, Reason
from sublet.booking.model.request import Request
from sublet.booking.model.session import STOPPED, End, EndKind
from sublet.booking.model.together import together
from sublet.kernel.errors import PlatformRefused
from sublet.platforms.caching import DataCache
from sublet.platforms.htcondor import offers as offering
from sublet.platforms.htcondor.archives import UNUSED, open_archives
from sublet.platforms.htcondor.job import JobPlace, description, files_of, placeholder
from sublet.platforms.htcondor.log import LogEvent
from sublet.platforms.htcondor.queue import CondorQueue
from sublet.platforms.htcondor.session import Submitted
from sublet.platforms.htcondor.states import judge
from sublet.platforms.port import INSTEAD, Duration, Platform, Progress, Results, Survey, quietly
from sublet.platforms.sessiondir import remove_tree

UNREACHED = "what listens on a node can't be reached from here"
LATELY = 20.0  # seconds that a look at the slots is good for, to say why something waits
HEEDED = 10.0  # seconds in which a node stops what it was told to stop
STALE = 60.0  # seconds without an event after which the queue is asked whether it still has a job


class HTCondor(Platform):
    """A pool of HTCondor, or one annex of it."""

    kind: ClassVar[str] = "htcondor"
    tells: ClassVar[bool] = True
    terms: Literal["booked", "predicted"] = Field(  # type: ignore[misc]  # elsewhere fixed, here a setting
        default="predicted",
        description="`predicted`: others submit jobs there too. `booked`: it is for Sublet's sessions alone.",
    )
    fetches: ClassVar[bool] = False
    configuration: str = Field(
        default="", description="The configuration file that HTCondor's tools read; empty: this machine's own."
    )
    gathering: str = Field(default="", description="The same for the tools that see slots; empty: as for jobs.")
    programs: str = Field(default="", description="Where HTCondor was unpacked; empty: it is on the PATH.")
    annex: str = Field(default="", description="The id of the annex whose slots are used; empty: those of no annex.")
    title: str = Field(default="", description="What the annex is called; empty: by the platform's name.")
    person: str = Field(default="", description="Whose sessions it takes; empty: everybody's.")
    coming: str = Field(default="", description="In words, which nodes of an annex are still to come.")
    live: bool = Field(default=True, description="Whether it is asked; else it only keeps what its sessions left.")
    supplier: str = Field(default="", description="Whose slots an annex's are, as the access point knows them.")
    lease: Duration | None = Field(
        default=None, description="How long a job outlives a lost connection to its node; unset: as HTCondor says."
    )
    grace: Duration = Field(
        default=timedelta(seconds=5), ge=timedelta(0), description="Time between SIGTERM and SIGKILL, also at the end."
    )
    parts: int = Field(default=20, ge=1, le=1000, description="The most jobs that one bag is cut into.")
    fresh: Duration = Field(default=timedelta(seconds=5), description="How long a survey of the slots is valid.")
    _home: Path = PrivateAttr()
    _queue: CondorQueue = PrivateAttr()
    _view: offering.View | None = PrivateAttr(default=None)
    _viewed: float = PrivateAttr(default=float("-inf"))
    _sizes: dict[str, int] | None = PrivateAttr(default=None)
    _checked: dict[str, float] = PrivateAttr(default_factory=dict)
    _settling: dict[str, asyncio.Lock] = PrivateAttr(default_factory=dict)

    @property
    def asleep(self) -> bool:
        """An annex without leases."""
        return not self.live

    def serves(self, person: str) -> bool:
        """An annex is its owner's."""
        return self.person in ("", person)

    def hosts(self, person: str) -> bool:
        """Whoever else runs something there does it as a guest, as its owner's account."""
        return not self.serves(person)

    async def open(self, home: Path) -> None:
        """Make the directories; HTCondor is looked for when it is needed."""
        self._queue = CondorQueue(self.name, self.programs, self.configuration, self.gathering)
        with self._queue.words():
            await asyncio.to_thread(self._open, home)

    def _open(self, home: Path) -> None:
        self._home = home.absolute()
        for name in ("sessions", "running", "news", "trash"):
            (self._home / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in (self._home / "trash").iterdir():
            remove_tree(left)

    # What there is

    async def survey(self) -> Survey:
        """The slots that report now."""
        view = await self._look()
        survey = offering.survey_of(view, self.title or self.name)
        return replace(survey, taken=offering.list_taken(view)) if self.terms == "booked" else survey

    def unfit(self, request: Request) -> Sequence[Reason]:
        """Several nodes for one session, and whatever someone would connect to."""
        return [*offering.unfit(request, self._seen)]

    @property
    def _seen(self) -> offering.Seen:
        return offering.Seen(self.name, self.title, self.parts, self.coming)

    @property
    def _called(self) -> str:
        return f"the annex {self.title}" if self.title else self.name

    async def _look(self, good_for: float | None = None) -> offering.View:
        """The slots and jobs, as they were at most so many seconds ago."""
        most = self.fresh.total_seconds() if good_for is None else good_for
        if self._view is None or time.monotonic() - self._viewed > most:
            self._view, self._viewed = await self._queue.view(self.annex), time.monotonic()
        return self._view

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """When a slot is free for it, by what runs and waits there; or why not."""
        self._viewed = float("-inf")
        view = await self._look()
        return offering.answer(view, request, ways[0], now, self._seen)

    # Jobs

    def _session(self, key: str) -> Submitted:
        return Submitted(self.name, self._home, key)

    async def place(self, key: str) -> Path | None:
        """The session's directory here: what is brought to it travels with its jobs."""
        session = self._session(key)
        with self._queue.words():
            session.make()
        return session.root

    async def session_directory(self, key: str) -> str:
        """The session's directory, by a name that the job puts the real one for."""
        return placeholder(self._session(key).key)

    async def keep(self, file: Path, digest: str = "", user: str = "", progress: Progress = quietly) -> str:
        """On an annex: put it aside, to be kept by the systems of its nodes; it travels with jobs to others."""
        if not self.annex or not user:
            return str(file)
        with self._queue.words():
            name = await asyncio.to_thread(self._session(user).share, file)
        return f"{placeholder(user)}/{name}"

    async def expect_image(self, location: str, entry: str, user: str) -> str:
        """Note it: its jobs say so, and go where it is (annexes/inputs.py tells them)."""
        with self._queue.words():
            await asyncio.to_thread(self._session(user).expect, location)
        return f"{placeholder(user)}/{entry}"

    async def open_archives(self) -> DataCache:
        """Where archives of images are kept here, once for all that go from here."""
        return open_archives(self.name, self._home)

    async def sweep(self) -> Sequence[str]:
        """Let go of archives that were not needed for long."""
        return await open_archives(self.name, self._home).let_go((), UNUSED)

    async def find(self, key: str) -> str | None:
        """The jobs of this key: by what their directory says, else by what the queue and its history know."""
        session = self._session(key)
        if session.submitted:
            return key
        if not session.tries:
            return None
        await self._queue.settle_tries(session.root)
        if session.submitted:
            return key
        cluster = await self._queue.find(key)
        if cluster:
            with self._queue.words():
                session.write("id", f"{cluster}\n".encode())
        return key if cluster else None

    async def submit(self, job: Job, key: str) -> str:
        """Write all that it needs, then submit it, once."""
        if job.program.connects:
            raise PlatformRefused(platform=self.name, why=UNREACHED)
        session = self._session(key)
        if await self.find(key):
            return key
        tries = session.tries
        with self._queue.words():
            await asyncio.to_thread(self._lay_out, job, session)
        return key if await self._queue.submit(session.root, tries) else await self.submit(job, key)

    def _lay_out(self, job: Job, session: Submitted) -> None:
        left = job.until - datetime.now(UTC)
        guest = job.person if self.hosts(job.person) else ""
        node = job.nodes[0] if job.nodes else ""
        place = JobPlace(str(session.root), self.annex, self.supplier, self.grace, self.lease, guest, node=node)
        try:
            files = dict(files_of(job, session.key, left, self.grace))
            brought, size = session.lay_out(job, files)
            text = description(job, session.key, replace(place, size=size, image=session.image), left, brought)
            session.write("description", text.encode())
        except ValueError as error:
            raise PlatformRefused(platform=self.name, why=str(error)) from error

    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        """The states of many jobs at once: most need no question to anybody."""
        states = await asyncio.to_thread(lambda: {id: self._state(self._session(id)) for id in ids})
        doubtful = [id for id, state in states.items() if state is None]
        quiet = [id for id, state in states.items() if state and state.state is not State.ENDED and self._stale(id)]
        absent = await self._queue.absent(quiet)
        self._checked.update(dict.fromkeys(quiet, time.monotonic()))
        for id in (*doubtful, *absent):
            states[id] = await self._settle(self._session(id))
        known = {id: state or JobState(State.UNKNOWN) for id, state in states.items()}
        return await self._with_nodes(known)

    async def _with_nodes(self, states: Mapping[str, JobState]) -> Mapping[str, JobState]:
        """The same; where something waits, and there is no node at all that it could wait for, that is said."""
        waiting = {id: state for id, state in states.items() if state.state is State.QUEUED}
        if not waiting or offering.places(await self._look(LATELY)):
            return states
        words = "; ".join(filter(None, (f"{self._called} has no node now", self.coming)))
        return {
            **states,
            **{id: replace(state, condition=f"{state.condition}; {words}") for id, state in waiting.items()},
        }

    def _stale(self, id: str) -> bool:
        """Whether it is time to ask the queue if it still has a job, because it has not reported for a while."""
        now = time.monotonic()
        return now - self._checked.setdefault(id, now) > STALE

    def _state(self, session: Submitted) -> JobState | None:
        """What its directory says; None: something has to be done, or asked, before that can be said."""
        if session.ended or not session.submitted:
            return session.state()
        states = _judge_jobs(session)
        if all(state.state is State.ENDED for state in states) or any(map(_came_back, session.read_log().values())):
            return None
        return together(states) if len(states) > 1 else states[0]

    async def _settle(self, session: Submitted) -> JobState:
        """Ask the queue, and bring what a session has come to in order: its results, its record, and the queue."""
        lock = self._settling.setdefault(session.key, asyncio.Lock())
        async with lock:
            if session.ended:
                return session.state()
            self._checked[session.key] = time.monotonic()
            events = await asyncio.to_thread(session.read_log)
            if all(job.status == "exited" for job in events.values()):
                return await self._finish(session, {})
            there, idle = await self._queue.jobs_of(session.key)
            events = await asyncio.to_thread(session.read_log)  # after the queue: what has left it has told its end
            states = await asyncio.to_thread(_judge_jobs, session, idle)
            if all(state.state is State.ENDED for state in states):
                return await self._finish(session, idle)
            await self._queue.let_try(session.key, {n: idle[n] for n in idle if not events[n].starts})
            states = [
                state if state.state is State.ENDED or number in there else _missing(state)
                for number, state in enumerate(states)
            ]
        return together(states) if len(states) > 1 else states[0]

    async def _finish(self, session: Submitted, idle: Mapping[int, int]) -> JobState:
        """Collect what it left, write down how it ended, and let the queue forget it."""
        if any(job.status != "exited" for job in session.read_log().values()):
            await asyncio.to_thread(session.collect, await self._queue.spool())
        states = await asyncio.to_thread(_judge_jobs, session, idle)
        joined = await asyncio.to_thread(session.join)
        state = together(states, joined) if len(states) > 1 else states[0]
        ended = state.ended.timestamp() if state.ended else time.time()
        started = state.started.timestamp() if state.started else ended
        with self._queue.words():
            await asyncio.to_thread(session.settle, state.end or End(EndKind.UNKNOWN), started, ended)
        await self._forget(session)
        return session.state()

    async def _forget(self, session: Submitted) -> None:
        """Let the queue forget what has ended otherwise than by itself."""
        if any(event.status not in ("", "exited") for event in session.read_log().values()):
            await self._queue.forget(session.key)

    async def news(self) -> Sequence[str] | None:
        """The jobs of which HTCondor has written something since the last call; None at first."""
        sizes = await asyncio.to_thread(self._look_at_logs)
        before, self._sizes = self._sizes, sizes
        if before is None:
            return None
        return sorted(key for key in {*sizes, *before} if sizes.get(key) != before.get(key))

    def _look_at_logs(self) -> dict[str, int]:
        return {key: self._session(key).log_size() for key in os.listdir(self._home / "running")}

    async def cancel(self, ids: Sequence[str], by: str) -> None:
        """Have HTCondor remove them: the job is told to stop all its processes, and what it wrote is brought back."""
        wanted = [session for id in ids if (session := self._session(id)).submitted and not session.ended]
        for session in wanted:
            with self._queue.words():
                session.cancel(by or "someone")
        await self._queue.remove([session.key for session in wanted])

    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of its time: the job looks for that when its time seems to be over."""
        session = self._session(id)
        if session.submitted and not session.ended:
            with self._queue.words():
                for number in range(session.parts):
                    target = session.part(number) / "until"
                    target.write_text(f"{round(until.timestamp())}\n")

    async def pause(self, id: str) -> str:
        """Hold what waits, and stop what runs where it is; refused where nothing stops, as over a spool."""
        session = self._session(id)
        how = await self._queue.pause(session.key)
        deadline = time.monotonic() + HEEDED
        while how == STOPPED and not any(event.status == "suspended" for event in session.read_log().values()):
            if time.monotonic() > deadline:
                await self._queue.resume(session.key)
                raise PlatformRefused(
                    platform=self.name, why="what runs there can't be stopped for a while", hint=INSTEAD
                )
            await asyncio.sleep(0.1)
        return how

    async def resume(self, id: str) -> str:
        """Let it go on."""
        return await self._queue.resume(self._session(id).key)

    # What they leave

    async def output(self, key: str, stream: Literal["stdout", "stderr"], offset: int, limit: int) -> bytes:
        """Part of what it printed: HTCondor brings it as it is printed."""
        with self._queue.words():
            return self._session(key).output(stream, offset, limit)

    async def output_size(self, key: str, stream: Literal["stdout", "stderr"]) -> int:
        """How much of what it printed is here."""
        session = self._session(key)
        if session.parts > 1 and not session.ended:
            return await super().output_size(key, stream)
        with self._queue.words():
            return session.output_size(stream)

    async def results(self, key: str) -> Results:
        """The files that it left: there are none before its end."""
        session = self._session(key)
        return await asyncio.to_thread(session.results)

    def read(self, key: str, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """One of those files, in pieces, from a byte on."""
        return self._session(key).pieces(path, offset)

    async def clean(self, key: str) -> None:
        """Remove the session's directory; what still runs must be cancelled first."""
        session = self._session(key)
        state = (await self.ask([key]))[key]
        if state.state in (State.RUNNING, State.QUEUED):
            raise PlatformRefused(platform=self.name, why="the session still runs", hint="Cancel it first.")
        await self._forget(session)
        with self._queue.words():
            await asyncio.to_thread(session.remove, self._home / "trash")
        self._checked.pop(key, None)
        self._settling.pop(key, None)


def _judge_jobs(session: Submitted, idle: Mapping[int, int] | None = None) -> list[JobState]:
    """Each of its jobs; `idle` are those that wait, as the queue says, and how often each was given to a node."""
    cancel, tries = session.cancelled, idle or {}
    return [
        judge(event, session.record(number), cancel, tries.get(number)) for number, event in session.read_log().items()
    ]


def _came_back(event: LogEvent) -> bool:
    return event.status == "waits" and event.back


def _missing(state: JobState) -> JobState:
    words = "unknown: the access point has it no longer, and its log does not say how it ended"
    return JobState(State.UNKNOWN, started=state.started, condition=words)
