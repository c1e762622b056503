"""News of jobs: reports of platforms that send them, and polling all jobs once in a while."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from sublet.booking.loop.context import LoopContext
from sublet.booking.model.job import JobState, State
from sublet.booking.model.marks import NONE, Marks, describe_trouble, mark_trouble, set_condition
from sublet.booking.model.phases import ACTIVE, STARTED
from sublet.kernel import metrics
from sublet.kernel.errors import SubletError
from sublet.kernel.log import log
from sublet.store.tx import Tx

Told = tuple[str, Marks]  # a condition and its marks: a change of either is recorded
NOTHING: Told = ("", NONE)
BATCH = 500
LISTEN = 0.1  # seconds between two checks for news of platforms, while something runs
SWEEP = timedelta(minutes=1)  # how often all running jobs are polled, whatever the news say


class JobPolling:
    """Makes sessions due whose jobs have news."""

    def __init__(self, context: LoopContext) -> None:
        """Start with nothing heard."""
        self.context = context
        self.running: dict[str, str] = {}  # sessions with a job that this process watches → their platforms
        self.swept: dict[str, datetime] = {}
        self.sweeps: dict[str, asyncio.Task[None]] = {}  # under way: a silent platform doesn't delay the others
        self.seen: dict[str, dict[str, Told]] = {}  # platform → job → its condition and marks at the last sweep

    async def hear(self, now: datetime) -> bool:
        """Make sessions due that platforms have news of, and start due sweeps; return whether there was any."""
        heard = False
        for name, platform in list(self.context.platforms.by_name.items()):
            try:
                news = await platform.news()
            except SubletError as error:
                metrics.platform_errors.labels(name, error.code).inc()
                continue
            if news:
                await self._wake(name, news, now)
                heard = True
            last = self.swept.get(name)
            due = last is None or abs(now - last) >= (self.context.settings.poll if news is None else SWEEP)
            if due and name not in self.sweeps:
                self.swept[name] = now
                self.sweeps[name] = asyncio.create_task(self._sweep(name, now), name=f"sweep {name}")
                self.sweeps[name].add_done_callback(partial(self._end_sweep, name))
        return heard

    async def _sweep(self, name: str, now: datetime) -> None:
        """Poll every job of a platform, in bulk, and wake the sessions of those that have changed."""
        jobs = await self.context.store.read(lambda tx: tx.sessions.active(name))
        self.running |= dict.fromkeys(jobs, name)
        wanted = list(jobs.values())
        seen, new = self.seen.get(name, {}), dict[str, Told]()
        for first in range(0, len(wanted), BATCH):
            some = wanted[first : first + BATCH]
            try:
                states = await self.context.platforms.get(name).ask(some)
            except SubletError as error:
                metrics.platform_errors.labels(name, error.code).inc()
                trouble = describe_trouble(error), mark_trouble(NONE, error)
                await self._tell_all(name, [job for job in wanted if seen.get(job) != trouble], error, now)
                self.seen[name] = dict.fromkeys(wanted, trouble)
                return
            await self._wake(
                name, [job for job in some if self._has_changed(states.get(job), seen.get(job, NOTHING))], now
            )
            new |= {job: (state.condition, state.marks) for job, state in states.items()}
        self.seen[name] = new

    def _end_sweep(self, name: str, task: asyncio.Task[None]) -> None:
        self.sweeps.pop(name, None)
        if not task.cancelled() and (error := task.exception()):
            log.error("sweep.failed", platform=name, why=repr(error))
        self.context.signals.nudged.set()

    async def _tell_all(self, platform: str, jobs: Sequence[str], error: SubletError, now: datetime) -> None:
        """Record in running sessions why their platform can't be polled; the next successful poll replaces that."""

        def tell(tx: Tx) -> None:
            for session in tx.sessions.by_job(platform, jobs):
                changes = set_condition(describe_trouble(error), mark_trouble(session.marks, error))
                tx.sessions.change(session.id, when=tuple(STARTED), now=now, **changes)

        if jobs:
            await self.context.store.write(tell)
            await self.context.signals.announce()

    @staticmethod
    def _has_changed(state: JobState | None, before: Told) -> bool:
        """Whether a job has ended, is lost, or has another condition than at the last sweep."""
        if state is None or state.state not in (State.RUNNING, State.QUEUED):
            return True
        return (state.condition, state.marks) != before

    async def _wake(self, platform: str, jobs: Sequence[str], now: datetime) -> None:
        """Make the sessions of these jobs due."""

        def wake(tx: Tx) -> None:
            for session in tx.sessions.by_job(platform, jobs):
                tx.sessions.change(session.id, when=tuple(ACTIVE), now=now, due=now)

        if jobs:
            await self.context.store.write(wake)

    def listens_in(self, name: str, now: datetime) -> float:
        """Return the seconds until a platform with jobs may have news: soon if it sends them, else at the next poll."""
        platform, last = self.context.platforms.by_name.get(name), self.swept.get(name)
        if platform is None or platform.tells or last is None:
            return LISTEN
        return max(LISTEN, (last + self.context.settings.poll - now).total_seconds())
