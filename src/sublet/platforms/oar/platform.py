"""OAR, through its command line: oarsub, oarstat, oardel; on this machine, or on one that is reached over OpenSSH.

Ordinary users of OAR can reserve nodes ahead. So an offer can be *booked*: it is a reservation, under the key of the
future session, which is cancelled if nobody accepts the offer. A job's name is its session's key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Literal

from pydantic import Field, PrivateAttr

from sublet.booking.model.job import Job
from sublet.booking.model.offer import Answer, Offer, Reason
from sublet.booking.model.request import Request, Window
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.shape import Amounts
from sublet.kernel.errors import LoginNeeded, PlatformUnreachable
from sublet.platforms.batch import fitting
from sublet.platforms.batch.commands import to_move_end
from sublet.platforms.batch.job import Submission
from sublet.platforms.batch.planning import AHEAD, LEEWAY, SitePlan, windows_now
from sublet.platforms.batch.probe import probe_site
from sublet.platforms.batch.reserving_platform import ReservingPlatform
from sublet.platforms.batch.scheduler import Answers, Scheduler
from sublet.platforms.batch.site import SiteNode, SiteQueue, list_choices, note_absent
from sublet.platforms.oar import commands as to
from sublet.platforms.oar import readers as read
from sublet.platforms.oar.offers import limit_hosts, share_memory
from sublet.platforms.oar.options import TAKEN, OarWish, words_for, words_to_reserve
from sublet.platforms.oar.queues import OarQueues
from sublet.platforms.oar.scheduler import OAR
from sublet.platforms.port import Memory, Survey
from sublet.systems.model.probe import Live

UNPLANNED = "; OAR's plan was not seen"


class Oar(ReservingPlatform):
    """A cluster with OAR."""

    kind: ClassVar[str] = "oar"
    scheduler: ClassVar[Scheduler] = OAR
    starts_each_node: ClassVar[bool] = True
    terms: ClassVar[Literal["booked", "predicted", "remote"]] = "predicted"
    properties: str = Field(
        default="",
        max_length=500,
        pattern=r"^[\x20-\x7e]*$",
        description="What nodes must be, as oarsub's `-p` takes it: `cluster='dahu' AND memnode > 100000`.",
    )
    node_memory: Memory = Field(
        default=4 << 30, gt=0, description="The memory of a node, where OAR has no property `memnode` or `mem` for it."
    )
    _queues: OarQueues = PrivateAttr(default_factory=OarQueues)

    # Survey

    async def survey(self) -> Survey:
        """Return a survey that is at most `fresh` old; without a login, the last one."""
        await self._look_around()
        nodes = self._list_nodes()
        notes = [
            *note_absent(nodes),
            *list_choices(nodes).describe(),
            "OAR gives no memory by itself: it comes with cores",
            *self._manners.notes,
        ]
        return self._surveyor.describe(nodes, *notes)

    def _list_resources(self) -> tuple[read.OarResource, ...]:
        return read.read_resources(self._surveyor.said.get("nodes", ""))

    def _list_nodes(self) -> tuple[SiteNode, ...]:
        return read.read_nodes(self._list_resources(), self.node_memory)

    async def probe(self, tools: Mapping[str, str]) -> Live:
        """Ask for the site's queues, limits, nodes and tools now, which needs a login."""
        live = await probe_site(self.name, self.kind, self.reach, self._surveying, tools, self._read_site)
        queue = self.queue or read.DEFAULT_QUEUE
        is_closed = await self._queues.find_refusal(self.name, self.reach, queue, timedelta(0))
        return replace(live, queues=()) if is_closed else live

    def _read_site(self, answers: Answers) -> tuple[Sequence[SiteQueue], Sequence[SiteNode]]:
        nodes = read.read_nodes(read.read_resources(answers.get("nodes", "")), self.node_memory)
        return (SiteQueue(name := self.queue or read.DEFAULT_QUEUE, default=True),), [
            replace(node, queues=(name,)) for node in nodes
        ]

    @property
    def _surveying(self) -> Scheduler:
        """OAR, whose survey lists only nodes with the properties of the settings."""
        return replace(OAR, survey=to.to_survey(self.properties))

    def expire_survey(self) -> None:
        """Ask OAR again at the next survey, also about its queues."""
        super().expire_survey()
        self._queues.forget()

    def can_take(self, option: str) -> bool:
        """Whether the option is the queue, the project or the GPU type."""
        return option in TAKEN

    # Offers

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """Return an offer for what OAR's plan would start now, and reservations, which are booked."""
        if closed := fitting.find_closed(request, self.name, self._manners.interactive, self.connects):
            return Answer(reasons=(closed,))
        await self._look_around()
        nodes = self._list_nodes()
        queue = SiteQueue(request.scheduler.queue or self.queue or read.DEFAULT_QUEUE)
        no = await self._queues.find_refusal(self.name, self.reach, queue.name, self._manners.survey)
        no = no or fitting.find_untyped(request, nodes, self.name)
        nodes = tuple(fitting.of_type(nodes, request.scheduler.gpu_type))
        if no := no or fitting.find_excess(request, queue, nodes, self.name):
            return Answer(reasons=(no,))
        hosts = limit_hosts(request.least, nodes)
        wish = OarWish(queue.name, share_memory(request.least, nodes), self._find_core(), hosts)
        plan = await self._find_plan(now, nodes)
        answers = [self._predict(request, wish, plan, ways[0], now)]
        if plan and not request.after and self.reservations:
            answers += await self.reserve_ahead(
                request, now, lambda window: self._reserve(request, wish, plan, window, ways[0], now)
            )
        reasons = [each for each in answers if isinstance(each, Reason)]
        answer = fitting.answer([each for each in answers if isinstance(each, Offer)], reasons)
        return fitting.state_gpus(answer, request, lambda offer: nodes)

    async def _find_plan(self, now: datetime, nodes: tuple[SiteNode, ...]) -> SitePlan | None:
        """Return OAR's plan for all jobs on these nodes; None while nobody is signed in, or if OAR can't tell."""
        try:
            outcome = await self.reach.run(to.to_gantt(now, now + AHEAD))
        except LoginNeeded:
            return None
        if outcome.code:
            failure = self.failures.explain(outcome)
            if isinstance(failure, PlatformUnreachable):
                raise failure
            return None
        return SitePlan(nodes, read.read_gantt(outcome.text, self._list_resources()))

    def _predict(
        self, request: Request, wish: OarWish, plan: SitePlan | None, way: str, now: datetime
    ) -> Offer | Reason:
        windows = windows_now(request, now)
        if not windows:
            message = f"{self.name}: OAR starts jobs as soon as it can; only a reservation starts later."
            return Reason("urn:not-supported", "schedule", message, nearest="now", platform=self.name)
        start = plan.find_start(wish.amounts, wish.limit, windows) if plan else now
        if start is None:
            message = f"{self.name}: OAR's plan has no room for it in the time asked for."
            return Reason("urn:window-passed", "schedule", message, platform=self.name)
        cut = replace(wish, amounts=self._cut(request, wish.amounts))
        note = "" if plan else UNPLANNED
        return fitting.offer_for(OAR.title, request, cut, start, way, self.name, now, note)

    def _cut(self, request: Request, amounts: Amounts) -> Amounts:
        """Split the amounts into as many parts as the kind wants and the settings and the site allow."""
        return replace(amounts, parts=min(request.parts, self._manners.parts))

    async def _reserve(
        self, request: Request, wish: OarWish, plan: SitePlan, window: Window, way: str, now: datetime
    ) -> Offer | Reason | None:
        return await self.reserve_by_plan(
            plan,
            lambda plan: self._reserve_by(request, wish, plan, window, way, now),
            lambda: self._find_plan(now, tuple(plan.nodes)),
        )

    async def _reserve_by(
        self, request: Request, wish: OarWish, plan: SitePlan, window: Window, way: str, now: datetime
    ) -> Offer | Reason | None:
        start = plan.find_start(wish.amounts, wish.limit, [window])
        if start is None:
            return None
        alone = replace(request, windows=(window,), recurring=(), parts=1)
        offer = fitting.offer_for(OAR.title, alone, wish, start, way, self.name, now, why="reserved, the earliest")
        if isinstance(offer, Reason):
            return offer
        constraint = self.properties
        words = words_to_reserve(wish, self._list_options(request), offer.start, constraint)
        return await self.reserve(offer, words, is_named=request.platform == self.name)

    def _list_options(self, request: Request | Job) -> SchedulerOptions:
        return replace(request.scheduler, project=request.scheduler.project or self.project)

    def _find_core(self) -> str:
        """Return the site's name for a core: sites that don't define cores count resources."""
        return "core" if '"core"' in self._surveyor.said.get("nodes", "") else "resource_id"

    # Jobs

    async def submit(self, job: Job, key: str) -> str:
        """Send staged data and submit the job; a reserved job is started by its reservation."""
        self.check_connects(job)
        await self._look_around()
        now = datetime.now(UTC)
        amounts = replace(job.amounts, time=max(timedelta(seconds=1), job.until - now))
        queue = job.scheduler.queue or self.queue
        nodes = self._list_nodes()
        wish = OarWish(queue, share_memory(amounts, nodes), self._find_core(), limit_hosts(amounts, nodes))
        self.check_room(key)
        words = words_for(wish, self._list_options(job), self.properties)
        if job.reservation:
            words = ("--reserved",)
            self.take_reservation(job.reservation)
        return await self.submit_once(job, key, Submission(words, wish.amounts, wish.limit))

    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of a job's time, and OAR's walltime too if necessary and allowed."""
        if not await self.must_move_end(id, until):
            return
        limit = self.find_time_limit(id, LEEWAY)
        if until + self.grace > limit:
            await self.reach.run(to.to_move_limit(self.failures, id, until + self.grace - limit))
        await self.reach.run(to_move_end(self.failures, await self.root(), id, round(until.timestamp())))
