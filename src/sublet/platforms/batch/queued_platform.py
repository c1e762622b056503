"""A batch system whose queues alone say when a job starts: nothing is reserved, and starts are predicted.

What is common to those that are known by their commands' answers: PBS and LSF.
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

TAKEN = frozenset({"queue", "project"})  # of what a person can ask of a scheduler: what these have words for


class QueuedPlatform(BatchPlatform):
    """A cluster that starts jobs when its queues let it."""

    terms: ClassVar[Literal["booked", "predicted", "remote"]] = "predicted"
    limit_stays: ClassVar[str]  # why the time limit of a job that runs can't be moved

    @abstractmethod
    def _read_site(self, answers: Answers) -> tuple[Sequence[SiteQueue], Sequence[SiteNode]]:
        """Its queues and nodes, out of what its commands said."""

    @abstractmethod
    async def _find_plan(self, now: datetime) -> SitePlan:
        """When the nodes are free, by everybody's jobs."""

    @abstractmethod
    def _write_submission(self, job: Job, queue: str, project: str) -> Submission:
        """What is asked of it for a job."""

    # What there is

    async def survey(self) -> Survey:
        """What it shows, at most `fresh` old; without a login, what it showed last."""
        await self._look_around()
        return self._surveyor.describe(self._list_nodes(), *self._manners.notes)

    def _list_queues(self) -> Sequence[SiteQueue]:
        return self._read_site(self._surveyor.said)[0]

    def _list_nodes(self) -> tuple[SiteNode, ...]:
        return tuple(self._read_site(self._surveyor.said)[1])

    async def probe(self, tools: Mapping[str, str]) -> Live:
        """Its queues, limits, nodes and tools, asked now: a login is needed."""
        return await probe_site(self.name, self.kind, self.reach, self.scheduler, tools, self._read_site)

    def can_take(self, option: str) -> bool:
        """A queue and a project."""
        return option in TAKEN

    # Offers

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """One offer for each queue that fits, as everybody's jobs let it start."""
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
        """Send what was brought, then submit."""
        self.check_connects(job)
        await self._look_around()
        amounts = replace(job.amounts, time=max(timedelta(seconds=1), job.until - datetime.now(UTC)))
        queue, project = job.scheduler.queue or self.queue, job.scheduler.project or self.project
        self.check_room(key)
        return await self.submit_once(job, key, self._write_submission(replace(job, amounts=amounts), queue, project))

    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of its time, as far as the system's own limit leaves room."""
        if not await self.must_move_end(id, until):
            return
        if until + self.grace > self.find_time_limit(id, LEEWAY):
            raise PlatformRefused(platform=self.name, why=self.limit_stays)
        await self.reach.run(to_move_end(self.failures, await self.root(), id, round(until.timestamp())))
