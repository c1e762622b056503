"""A platform for tests and trials: it has all tools, and simulates all work by the clock.

A job takes as long as the setting `takes` says and exits with 0. Its program's environment can change that:
SUBLET_PLAY_TAKES (a duration) and SUBLET_PLAY_EXIT (an exit code). An interactive job takes all its time. The platform
can simulate each of the terms, and faults. Its jobs are kept in a journal in the platform's own directory, so that a
restarted service, or a second one beside it, finds the same jobs.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, PrivateAttr

from sublet.booking.model.amounts import memory_text, parse_duration
from sublet.booking.model.job import Job, JobState, State
from sublet.booking.model.offer import Answer, Node, Offer, Predicted, Quote, Reason, Remote, Terms
from sublet.booking.model.request import Request, Window
from sublet.booking.model.session import (
    CONTINUED,
    HELD,
    RELEASED,
    STOPPED,
)
from sublet.kernel.errors import BadAmount, NotFound, PlatformRefused, PlatformUnreachable
from sublet.platforms.machine import TOOLS
from sublet.platforms.memory.journal import Journal
from sublet.platforms.memory.played import NOWHERE, Played
from sublet.platforms.port import Duration, Memory, Platform, PoolName, Results, Survey

GIB = 1 << 30
PERFORMANCE = "urn:ivoa:calycopis:metric:compute-performance"


NAMES = tuple(field.name for field in fields(Played))


def as_entry(job: Played) -> dict[str, Any]:
    """Return a job as an entry of the journal."""
    return {name: getattr(job, name) for name in NAMES}


class MemoryPlatform(Platform):
    """A platform that plays: capacity as configured, work by the clock."""

    kind: ClassVar[str] = "memory"
    tells: ClassVar[bool] = True
    has_queues: ClassVar[bool] = True
    plays: ClassVar[bool] = True
    terms: Literal["booked", "predicted", "remote"] = Field(  # type: ignore[misc]  # elsewhere fixed, here a setting
        default="booked", description="The terms that it plays: `booked`, `predicted` or `remote`."
    )
    nodes: int = Field(default=1, ge=1, le=100_000, description="How many nodes it has.")
    cores: int = Field(default=16, ge=1, description="How many cores each node has.")
    memory: Memory = Field(default=16 * GIB, ge=1 << 20, description="How much memory each node has, as `16GiB`.")
    gpus: int = Field(default=0, ge=0, description="How many GPUs each node has.")
    disk: Memory = Field(default=0, ge=0, description="The node-local disk of each node, as `100GiB`.")
    storage: Memory = Field(default=1000 * GIB, ge=0, description="The size of its storage pool, as `1000GiB`.")
    pools: dict[PoolName, Memory] = Field(default_factory=dict, description="Name → size of further storage pools.")
    performance: tuple[float, float] = Field(
        default=(150.0, 200.0), description="The least and the most compute performance that it claims."
    )
    takes: Duration = Field(default=timedelta(seconds=2), description="How long a job takes.", ge=timedelta(0))
    waits: tuple[Duration, Duration, Duration] = Field(
        default=(timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=20)),
        description="On predicted terms: the p10, p50 and p90 of the wait in the queue; jobs wait for the second.",
    )
    fault: Literal["none", "unreachable", "refuses", "slow", "loses-answer"] = Field(
        default="none",
        description="What goes wrong: nothing answers, submits are refused, each answer takes `delay`, "
        "or submits are done but their answer is lost.",
    )
    delay: Duration = Field(default=timedelta(seconds=1), description="How long an answer takes when it is slow.")
    _journal: Journal = PrivateAttr()
    _jobs: dict[str, Played] = PrivateAttr(default_factory=dict)
    _moments: list[tuple[float, str]] = PrivateAttr(default_factory=list)
    _touched: set[str] = PrivateAttr(default_factory=set)
    _asked: bool = PrivateAttr(default=False)

    async def open(self, home: Path) -> None:
        """Read the jobs that were submitted earlier."""
        await asyncio.to_thread(self._open, home)

    def _open(self, home: Path) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self._journal = Journal(home / "journal")
        with self._journal.lock():
            lines = self._catch_up()
            if lines > 1000 and lines > 4 * len(self._jobs):
                self._journal.rewrite([{"job": as_entry(job)} for job in self._jobs.values()])

    def _catch_up(self) -> int:
        """Apply what any process has written since, and return the number of entries."""
        anew, entries = self._journal.news()
        if anew:
            self._jobs.clear()
            self._moments.clear()
        for entry in entries:
            self._apply(entry)
        return len(entries)

    def _apply(self, entry: Mapping[str, Any]) -> None:
        if "removed" in entry:
            self._jobs.pop(entry["removed"], None)
            return
        job = Played(**entry["job"])
        self._jobs[job.key] = job
        self._touched.add(job.key)
        for at in (job.starts, job.ends):
            heapq.heappush(self._moments, (at, job.key))

    def _write(self, job: Played) -> None:
        self._journal.add({"job": as_entry(job)})
        self._catch_up()

    async def _meet_fault(self) -> None:
        if self.fault == "unreachable":
            raise PlatformUnreachable(platform=self.name, why="it plays being unreachable")
        if self.fault == "slow":
            await asyncio.sleep(self.delay.total_seconds())

    async def survey(self) -> Survey:
        """Return the configured nodes."""
        await self._meet_fault()
        names = (
            [self.name]
            if self.nodes == 1
            else [f"{self.name}-{number:0{len(str(self.nodes))}}" for number in range(1, self.nodes + 1)]
        )
        low, high = self.performance
        return Survey(
            as_of=datetime.now(UTC),
            nodes=tuple(Node(name, self.cores, self.memory, self.gpus, self.disk) for name in names),
            pools={"storage": self.storage} | self.pools,
            tools=dict.fromkeys(TOOLS, "played"),
            metrics=(Quote(PERFORMANCE, low, high),),
            notes=("nothing is run here: the work is done by the clock only",),
        )

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """Return one offer on the simulated terms in each window that it can meet, or why not."""
        await self._meet_fault()
        wanted = request.compute
        for what, least, limit, text in (
            ("nodes", wanted.nodes.min, self.nodes, str),
            ("cores", wanted.cores.min, self.cores, str),
            ("memory", wanted.memory.min, self.memory, memory_text),
            ("gpus", wanted.gpus.min, self.gpus, str),
            ("disk", wanted.disk.min, self.disk, memory_text),
        ):
            if least > limit:
                message = f"{self.name} has {text(limit)} {what}, and {text(least)} were asked for."
                field = f"compute.{what}.min"
                no = Reason("urn:resource-limit", field, message, text(least), text(limit), text(limit), self.name)
                return Answer(reasons=(no,))
        if not request.windows:
            return Answer(offers=(self._offer(request, ways[0], now, None),))
        start = self._soonest(now)
        met = [
            window
            for window in request.windows
            if max(start, window.start) < max(window.end, window.start + timedelta.resolution)
        ]
        if not met:
            message = (
                f"{self.name} would start it at {start:%Y-%m-%d %H:%M} UTC, after the windows that were asked for."
            )
            nearest = f"{start.isoformat()}/PT1H"
            no = Reason("urn:window-passed", "schedule", message, nearest=nearest, platform=self.name)
            return Answer(reasons=(no,))
        offers = {offer.start: offer for offer in (self._offer(request, ways[0], now, window) for window in met)}
        return Answer(offers=tuple(offers[start] for start in sorted(offers)))

    def can_take(self, option: str) -> bool:
        """Whether the option is supported: the simulated cluster takes all of them."""
        return True

    def _soonest(self, now: datetime) -> datetime:
        return now if self.terms == "remote" else now + self.waits[1]

    def _offer(self, request: Request, way: str, now: datetime, window: Window | None) -> Offer:
        wanted, opens = request.compute, window.start if window else now  # a queue holds the job until then
        start, p10, p50, p90 = (max(time, opens) for time in (self._soonest(now), *(now + wait for wait in self.waits)))
        terms: Terms = Predicted(p10, p50, p90, samples=100, as_of=now)
        if self.terms == "remote":
            terms = Remote(f"{NOWHERE}/offersets/played", now + timedelta(minutes=5))
        return Offer(
            platform=self.name,
            way=way,
            start=start,
            latest_start=max(start, window.end) if window else start,
            duration=request.duration,
            nodes=(),
            shape=wanted.least,
            metrics=(Quote(PERFORMANCE, *self.performance),),
            terms=terms,
            why="earliest",
            queue=(request.scheduler.queue or "played") if self.terms == "predicted" else "",
            count=wanted.nodes.min,
            begin=opens if opens > now else None,
        )

    async def place(self, key: str) -> Path | None:
        """Return None, as no data is staged."""
        return None

    async def find(self, key: str) -> str | None:
        """Return the key if a job was submitted under it."""
        await self._meet_fault()
        self._catch_up()
        return key if key in self._jobs else None

    async def submit(self, job: Job, key: str) -> str:
        """Record when the job starts and ends."""
        await self._meet_fault()
        if self.fault == "refuses":
            raise PlatformRefused(platform=self.name, why="it plays refusing")
        with self._journal.lock():
            self._catch_up()
            if key not in self._jobs:
                self._write(self._play(job, key))
        if self.fault == "loses-answer":
            raise PlatformUnreachable(platform=self.name, why="it plays losing its answer")
        return key

    def _play(self, job: Job, key: str) -> Played:
        now = datetime.now(UTC).timestamp()
        environment = job.program.environment
        try:
            takes = (
                parse_duration(environment["SUBLET_PLAY_TAKES"]) if "SUBLET_PLAY_TAKES" in environment else self.takes
            )
            code = int(environment.get("SUBLET_PLAY_EXIT", "0"))
        except (BadAmount, ValueError) as error:
            raise PlatformRefused(platform=self.name, why=str(error)) from error
        starts = now + (self.waits[1].total_seconds() if self.terms == "predicted" else 0)
        starts = max(starts, job.begin.timestamp()) if job.begin else starts
        until = job.until.timestamp()
        if self.terms == "predicted":
            until += starts - now  # a queue gives a job its whole time from its own start
        return Played(
            key=key,
            starts=starts,
            takes=until - starts if job.program.connects else takes.total_seconds(),
            until=until,
            code=code,
            program=job.program.argv[0],
            connects=job.program.connects,
        )

    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        """Return the current states of these jobs."""
        await self._meet_fault()
        self._catch_up()
        now = datetime.now(UTC).timestamp()
        return {key: self._jobs[key].state(now) if key in self._jobs else JobState(State.UNKNOWN) for key in ids}

    async def news(self) -> Sequence[str] | None:
        """Return the jobs that started, ended or were changed since the last call; None at first."""
        await self._meet_fault()
        self._catch_up()
        now = datetime.now(UTC).timestamp()
        changed, self._touched = self._touched, set()
        while self._moments and self._moments[0][0] <= now:
            changed.add(heapq.heappop(self._moments)[1])
        first, self._asked = not self._asked, True
        return None if first else sorted(changed)

    async def cancel(self, ids: Sequence[str], by: str) -> None:
        """Stop these jobs now."""
        await self._meet_fault()
        now = datetime.now(UTC).timestamp()
        with self._journal.lock():
            self._catch_up()
            for key in ids:
                if (job := self._jobs.get(key)) and now < job.ends:
                    self._write(replace(job, by=by, stopped=now))

    async def give_back(self, id: str, nodes: Sequence[str]) -> None:
        """Do nothing, as no real nodes were allocated."""
        await self._meet_fault()

    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of a job's time."""
        await self._meet_fault()
        with self._journal.lock():
            self._catch_up()
            job = self._jobs.get(id)
            end = until.timestamp()
            if job and end != job.until and datetime.now(UTC).timestamp() < job.ends:
                self._write(replace(job, until=end, takes=end - job.starts if job.connects else job.takes))

    async def pause(self, id: str) -> str:
        """Stop a job's work, but not the clock of its time."""
        held = await self._rewritten(id, lambda job, now: job if job.paused is not None else replace(job, paused=now))
        return HELD if held else STOPPED

    async def resume(self, id: str) -> str:
        """Continue a job's work."""
        held = await self._rewritten(id, lambda job, now: job.resume_at(now))
        return RELEASED if held else CONTINUED

    async def _rewritten(self, id: str, change: Callable[[Played, float], Played]) -> bool:
        """Change a job, and return whether it hasn't begun; raise PlatformRefused if it has ended."""
        await self._meet_fault()
        with self._journal.lock():
            self._catch_up()
            now = datetime.now(UTC).timestamp()
            job = self._jobs.get(id)
            if job is None or now >= job.ends:
                raise PlatformRefused(platform=self.name, why="the job is over", hint="`sublet ps` shows what runs.")
            if (new := change(job, now)) != job:
                self._write(new)
            return job.held or now < job.starts

    async def output(self, key: str, stream: Literal["stdout", "stderr"], offset: int, limit: int) -> bytes:
        """Return a few lines that explain the simulation."""
        self._catch_up()
        job = self._jobs.get(key)
        if job is None or stream == "stderr":
            return b""
        text = f"{self.name} is a platform that plays: nothing is run here.\nIt would have run {job.program}.\n"
        state = job.state(datetime.now(UTC).timestamp())
        if state.end:
            text += f"Its end is played, too: {state.end.kind}.\n"
        return text.encode()[offset : offset + limit]

    async def results(self, key: str) -> Results:
        """Return no results, as nothing was run."""
        return Results()

    async def read(self, key: str, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """Raise NotFound, as there are no results."""
        raise NotFound(noun="result", name=path, hint=f"{self.name} only plays, and leaves no files.")
        yield b""

    async def clean(self, key: str) -> None:
        """Remove a job."""
        with self._journal.lock():
            self._catch_up()
            if key in self._jobs:
                self._journal.add({"removed": key})
                self._catch_up()
