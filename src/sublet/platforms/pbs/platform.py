"""PBS Professional and OpenPBS, by their own command line: qsub, qstat, qdel, pbsnodes; here, or over OpenSSH.

Written from their manuals, and not tried on a real one yet. A job is called `s-KEY`.
"""

from __future__ import annotations

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
from sublet.platforms.batch.planning import SitePlan
from sublet.platforms.batch.platform import BatchPlatform
from sublet.platforms.batch.probe import probe_site
from sublet.platforms.batch.queue_offers import QueueOffers, choose_queues
from sublet.platforms.batch.scheduler import Answers, Scheduler
from sublet.platforms.batch.site import SiteNode, SiteQueue
from sublet.platforms.pbs import commands as to
from sublet.platforms.pbs import readers as read
from sublet.platforms.pbs.options import LEEWAY, TAKEN, PbsWish, words_for
from sublet.platforms.pbs.scheduler import PBS
from sublet.platforms.port import Survey
from sublet.systems.model.probe import Live


class Pbs(BatchPlatform):
    """A cluster with PBS."""

    kind: ClassVar[str] = "pbs"
    scheduler: ClassVar[Scheduler] = PBS
    terms: ClassVar[Literal["booked", "predicted", "remote"]] = "predicted"

    # What there is

    async def survey(self) -> Survey:
        """What PBS shows, at most `fresh` old; without a login, what it showed last."""
        await self._look_around()
        return self._surveyor.describe(self._list_nodes(), *self._manners.notes)

    def _list_queues(self) -> Sequence[SiteQueue]:
        return self._read_site(self._surveyor.said)[0]

    def _list_nodes(self) -> tuple[SiteNode, ...]:
        return tuple(self._read_site(self._surveyor.said)[1])

    async def probe(self, tools: Mapping[str, str]) -> Live:
        """Its queues, limits, nodes and tools, asked now: a login is needed."""
        return await probe_site(self.name, self.kind, self.reach, self.scheduler, tools, self._read_site)

    def _read_site(self, answers: Answers) -> tuple[Sequence[SiteQueue], Sequence[SiteNode]]:
        """One that is tied to no queue serves them all."""
        queues = read.read_queues(answers.get("queues", ""))
        names = tuple(queue.name for queue in queues)
        nodes = read.read_nodes(answers.get("nodes", ""))
        return queues, [node if node.queues else replace(node, queues=names) for node in nodes]

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
        offers = QueueOffers(PBS.title, self.name, queues, self._list_nodes(), LEEWAY)
        parts = min(request.parts, self._manners.parts)
        return offers.answer(request, await self._find_plan(now), ways[0], now, parts)

    async def _find_plan(self, now: datetime) -> SitePlan | None:
        """When the nodes are free; None while nobody is signed in."""
        try:
            outcome = await self.reach.run(to.to_plan())
        except LoginNeeded:
            return None
        if outcome.code:
            raise self.failures.explain(outcome)
        return SitePlan(self._list_nodes(), read.read_takes(outcome.text, now))

    # Jobs

    async def submit(self, job: Job, key: str) -> str:
        """Send what was brought, then submit."""
        self.check_connects(job)
        await self._look_around()
        amounts = replace(job.amounts, time=max(timedelta(seconds=1), job.until - datetime.now(UTC)))
        wish = PbsWish(job.scheduler.queue or self.queue, amounts, job.begin)
        asked = replace(job.scheduler, project=job.scheduler.project or self.project)
        self.check_room(key)
        return await self.submit_once(job, key, Submission(words_for(wish, asked), amounts, wish.limit))

    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of its time, as far as PBS's walltime leaves room: only an operator changes that."""
        if not await self.must_move_end(id, until):
            return
        limit = self.find_time_limit(id, LEEWAY)
        if until + self.grace > limit:
            raise PlatformRefused(platform=self.name, why="only an operator changes the walltime of a job that runs")
        await self.reach.run(to_move_end(self.failures, await self.root(), id, round(until.timestamp())))
