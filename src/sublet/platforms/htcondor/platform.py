"""HTCondor, through its command line: a pool, or an annex, which is identified by its ID.

The tools run here, at the access point. The platform's own directory contains

    sessions/KEY/   one session (described in session.py)
    running/KEY     a mark for each session that has not ended
    trash/          what is being removed

A job's ID is its session's key. HTCondor's own log in the session's directory says what became of the job, so that the
access point is asked only to change something, and now and then whether it still has the jobs that it should have.
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
from weakref import WeakValueDictionary

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
LATELY = 20.0  # seconds that a view of the slots is good for, to explain why a job waits
HEEDED = 10.0  # seconds for a node to suspend a job
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
    _settling: WeakValueDictionary[str, asyncio.Lock] = PrivateAttr(default_factory=WeakValueDictionary)

    @property
    def asleep(self) -> bool:
        """Whether this is an annex without leases."""
        return not self.live

    def serves(self, person: str) -> bool:
        """Whether this person may run sessions there: an annex belongs to its owner."""
        return self.person in ("", person)

    def hosts(self, person: str) -> bool:
        """Whether this person is a guest, whose sessions run under the owner's account."""
        return not self.serves(person)

    async def open(self, home: Path) -> None:
        """Create the directories; HTCondor's programs are looked for when they are needed."""
        self._queue = CondorQueue(self.name, self.programs, self.configuration, self.gathering)
        with self._queue.words():
            await asyncio.to_thread(self._open, home)

    def _open(self, home: Path) -> None:
        self._home = home.absolute()
        for name in ("sessions", "running", "news", "trash"):
            (self._home / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in (self._home / "trash").iterdir():
            remove_tree(left)

    # Survey

    async def survey(self) -> Survey:
        """Return the slots that report now."""
        view = await self._look()
        survey = offering.survey_of(view, self.title or self.name)
        return replace(survey, taken=offering.list_taken(view)) if self.terms == "booked" else survey

    def unfit(self, request: Request) -> Sequence[Reason]:
        """Return why this platform could never run the request: several nodes, or something to connect to."""
        return [*offering.unfit(request, self._seen)]

    @property
    def _seen(self) -> offering.Seen:
        return offering.Seen(self.name, self.title, self.parts, self.coming)

    @property
    def _called(self) -> str:
        return f"the annex {self.title}" if self.title else self.name

    async def _look(self, good_for: float | None = None) -> offering.View:
        """Return the slots and jobs, as of at most `good_for` seconds ago."""
        most = self.fresh.total_seconds() if good_for is None else good_for
        if self._view is None or time.monotonic() - self._viewed > most:
            self._view, self._viewed = await self._queue.view(self.annex), time.monotonic()
        return self._view

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """Return when a slot is free for the request, by the running and queued jobs, or why not."""
        self._viewed = float("-inf")
        view = await self._look()
        return offering.answer(view, request, ways[0], now, self._seen)

    # Jobs

    def _session(self, key: str) -> Submitted:
        return Submitted(self.name, self._home, key)

    async def place(self, key: str) -> Path | None:
        """Return the session's local directory; data staged in it is sent along with the jobs."""
        session = self._session(key)
        with self._queue.words():
            session.make()
        return session.root

    async def session_directory(self, key: str) -> str:
        """Return a placeholder for the session's directory, which the job replaces by the real path."""
        return placeholder(self._session(key).key)

    async def keep(self, file: Path, digest: str = "", user: str = "", progress: Progress = quietly) -> str:
        """On an annex, set a file aside for its nodes' systems to keep; elsewhere it is sent along with the jobs."""
        if not self.annex or not user:
            return str(file)
        with self._queue.words():
            name = await asyncio.to_thread(self._session(user).share, file)
        return f"{placeholder(user)}/{name}"

    async def expect_image(self, location: str, entry: str, user: str) -> str:
        """Record the image that a session needs: its jobs go only where it is cached (annexes/inputs.py)."""
        with self._queue.words():
            await asyncio.to_thread(self._session(user).expect, location)
        return f"{placeholder(user)}/{entry}"

    async def open_archives(self) -> DataCache:
        """Open the cache of image archives that are sent from here."""
        return open_archives(self.name, self._home)

    async def sweep(self) -> Sequence[str]:
        """Remove archives that haven't been needed for long."""
        return await open_archives(self.name, self._home).let_go((), UNUSED)

    async def find(self, key: str) -> str | None:
        """Return the key if its jobs were submitted, by the session's directory, the queue or its history."""
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
        """Write all files that the jobs need, then submit them once."""
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
        """Return the states of many jobs at once; most are known without asking the queue."""
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
        """Add to the condition of queued jobs that there is no node at all, if so."""
        waiting = {id: state for id, state in states.items() if state.state is State.QUEUED}
        if not waiting or offering.places(await self._look(LATELY)):
            return states
        words = "; ".join(filter(None, (f"{self._called} has no node now", self.coming)))
        return {
            **states,
            **{id: replace(state, condition=f"{state.condition}; {words}") for id, state in waiting.items()},
        }

    def _stale(self, id: str) -> bool:
        """Whether to ask the queue if it still has a job, because nothing was checked for a while."""
        now = time.monotonic()
        return now - self._checked.setdefault(id, now) > STALE

    def _state(self, session: Submitted) -> JobState | None:
        """Return the state by the session's directory; None if the session must be settled first."""
        if session.ended or not session.submitted:
            return session.state()
        states = _judge_jobs(session)
        if all(state.state is State.ENDED for state in states) or any(map(_came_back, session.read_log().values())):
            return None
        return together(states) if len(states) > 1 else states[0]

    async def _settle(self, session: Submitted) -> JobState:
        """Ask the queue, and settle a session: collect its results, record its end, and update the queue."""
        async with self._settling.setdefault(session.key, asyncio.Lock()):
            if session.ended:
                return session.state()
            self._checked[session.key] = time.monotonic()
            events = await asyncio.to_thread(session.read_log)
            if all(job.status == "exited" for job in events.values()):
                return await self._finish(session, {})
            there, idle = await self._queue.jobs_of(session.key)
            events = await asyncio.to_thread(session.read_log)  # after the queue: ended jobs have logged it
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
        """Collect a session's results, record how it ended, and remove it from the queue."""
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
        """Remove jobs from the queue that didn't end by exiting."""
        if any(event.status not in ("", "exited") for event in session.read_log().values()):
            await self._queue.forget(session.key)

    async def news(self) -> Sequence[str] | None:
        """Return the jobs whose log has changed since the last call; None at the first call."""
        sizes = await asyncio.to_thread(self._look_at_logs)
        before, self._sizes = self._sizes, sizes
        if before is None:
            return None
        return sorted(key for key in {*sizes, *before} if sizes.get(key) != before.get(key))

    def _look_at_logs(self) -> dict[str, int]:
        return {key: self._session(key).log_size() for key in os.listdir(self._home / "running")}

    async def cancel(self, ids: Sequence[str], by: str) -> None:
        """Have HTCondor remove these jobs: all their processes are stopped, and their files are sent back."""
        wanted = [session for id in ids if (session := self._session(id)).submitted and not session.ended]
        for session in wanted:
            with self._queue.words():
                session.cancel(by or "someone")
        await self._queue.remove([session.key for session in wanted])

    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of a job's time; the job checks for this when its time seems to be over."""
        session = self._session(id)
        if session.submitted and not session.ended:
            with self._queue.words():
                for number in range(session.parts):
                    target = session.part(number) / "until"
                    target.write_text(f"{round(until.timestamp())}\n")

    async def pause(self, id: str) -> str:
        """Hold queued jobs and suspend running ones; raise PlatformRefused where that can't be done (spools)."""
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
        """Resume a job, and return how."""
        return await self._queue.resume(self._session(id).key)

    # Output and results

    async def output(self, key: str, stream: Literal["stdout", "stderr"], offset: int, limit: int) -> bytes:
        """Return part of a session's output, which HTCondor streams as it is printed."""
        with self._queue.words():
            return self._session(key).output(stream, offset, limit)

    async def output_size(self, key: str, stream: Literal["stdout", "stderr"]) -> int:
        """Return how much of a session's output has arrived."""
        session = self._session(key)
        if session.parts > 1 and not session.ended:
            return await super().output_size(key, stream)
        with self._queue.words():
            return session.output_size(stream)

    async def results(self, key: str) -> Results:
        """List a session's results; there are none before its end."""
        session = self._session(key)
        return await asyncio.to_thread(session.results)

    def read(self, key: str, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """Read a result file in pieces, from an offset."""
        return self._session(key).pieces(path, offset)

    async def clean(self, key: str) -> None:
        """Remove the session's directory; raise PlatformRefused if it still runs."""
        session = self._session(key)
        state = (await self.ask([key]))[key]
        if state.state in (State.RUNNING, State.QUEUED):
            raise PlatformRefused(platform=self.name, why="the session still runs", hint="Cancel it first.")
        await self._forget(session)
        with self._queue.words():
            await asyncio.to_thread(session.remove, self._home / "trash")
        self._checked.pop(key, None)


def _judge_jobs(session: Submitted, idle: Mapping[int, int] | None = None) -> list[JobState]:
    """Return the state of each of a session's jobs; `idle` says how often each queued one was sent to a node."""
    cancel, tries = session.cancelled, idle or {}
    return [
        judge(event, session.record(number), cancel, tries.get(number)) for number, event in session.read_log().items()
    ]


def _came_back(event: LogEvent) -> bool:
    return event.status == "waits" and event.back


def _missing(state: JobState) -> JobState:
    words = "unknown: the access point has it no longer, and its log does not say how it ended"
    return JobState(State.UNKNOWN, started=state.started, condition=words)
