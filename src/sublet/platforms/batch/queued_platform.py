"""A batch system without reservations, whose starts are predicted from its queues.

This is common to the systems that are read through their commands' output: PBS and LSF.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Literal

from sublet.booking.model.job import Job
from sublet.booking.model.offer import Answer
from sublet.booking.model.request import Request
from sublet.kernel.errors import LoginNeeded, PlatformRefused
from sublet.platforms.batch import fitting
from sublet.platforms.batch.commands import to_move_end
from sublet.platforms.batch.job import Submission
from sublet.platforms.batch.planning import LEEWAY, SitePlan
from sublet.platforms.batch.platform import BatchPlatform
from sublet.platforms.batch.probe import probe_site
from sublet.platforms.batch.queue_offers import QueueOffers, choose_queues
from sublet.platforms.batch.scheduler import Answers
from sublet.platforms.batch.site import SiteNode, SiteQueue
from sublet.platforms.port import Survey
from sublet.systems.model.probe import Live

TAKEN = frozenset({"queue", "project"})  # the scheduler options that these systems support


class QueuedPlatform(BatchPlatform):
    """A cluster that starts jobs as its queues allow."""

    terms: ClassVar[Literal["booked", "predicted", "remote"]] = "predicted"
    limit_stays: ClassVar[str]  # why the time limit of a running job can't be moved

    @abstractmethod
    def _read_site(self, answers: Answers) -> tuple[Sequence[SiteQueue], Sequence[SiteNode]]:
        """Read the queues and nodes from the output of the survey's commands."""

    @abstractmethod
    async def _find_plan(self, now: datetime) -> SitePlan:
        """Return when nodes are free, by everybody's jobs."""

    @abstractmethod
    def _write_submission(self, job: Job, queue: str, project: str) -> Submission:
        """Write what the scheduler is told about a job."""

    # Survey

    async def survey(self) -> Survey:
        """Return a survey that is at most `fresh` old; without a login, the last one."""
        await self._look_around()
        return self._surveyor.describe(self._list_nodes(), *self._manners.notes)

    def _list_queues(self) -> Sequence[SiteQueue]:
        return self._read(self._surveyor.said)[0]

    def _list_nodes(self) -> tuple[SiteNode, ...]:
        return tuple(self._read(self._surveyor.said)[1])

    def _read(self, answers: Answers) -> tuple[Sequence[SiteQueue], Sequence[SiteNode]]:
        return self.failures.read(lambda: self._read_site(answers))

    async def probe(self, tools: Mapping[str, str]) -> Live:
        """Ask for the site's queues, limits, nodes and tools now, which needs a login."""
        return await probe_site(self.name, self.kind, self.reach, self.scheduler, tools, self._read)

    def can_take(self, option: str) -> bool:
        """Whether the option is the queue or the project."""
        return option in TAKEN

    # Offers

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """Return one offer for each queue that fits, at the start that everybody's jobs allow."""
        if closed := fitting.find_closed(request, self.name, self._manners.interactive, self.connects):
            return Answer(reasons=(closed,))
        await self._look_around()
        queues = choose_queues(self._list_queues(), request.scheduler.queue or self.queue)
        offers = QueueOffers(self.scheduler.title, self.name, queues, self._list_nodes(), LEEWAY)
        try:
            plan = await self._find_plan(now)
        except LoginNeeded:
            plan = None
        return offers.answer(request, plan, ways[0], now, min(request.parts, self._manners.parts))

    # Jobs

    async def submit(self, job: Job, key: str) -> str:
        """Send staged data and submit the job."""
        self.check_connects(job)
        await self._look_around()
        amounts = replace(job.amounts, time=max(timedelta(seconds=1), job.until - datetime.now(UTC)))
        queue, project = job.scheduler.queue or self.queue, job.scheduler.project or self.project
        self.check_room(key)
        return await self.submit_once(job, key, self._write_submission(replace(job, amounts=amounts), queue, project))

    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of a job's time within the system's own limit; raise PlatformRefused beyond it."""
        if not await self.must_move_end(id, until):
            return
        if until + self.grace > self.find_time_limit(id, LEEWAY):
            raise PlatformRefused(platform=self.name, why=self.limit_stays)
        await self.reach.run(to_move_end(self.failures, await self.root(), id, round(until.timestamp())))
