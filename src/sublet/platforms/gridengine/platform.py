"""Grid Engine, through its command line: qsub, qstat, qdel, qacct; on this machine, or over OpenSSH.

Where a user may make advance reservations (`qrsub`: the access list `arusers`), offers can also be *booked*; otherwise
starts are predicted from everybody's jobs. A job is named `s-KEY`, because names there can't begin with a digit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Literal

from pydantic import Field

from sublet.booking.model.job import Job
from sublet.booking.model.offer import Answer, Offer, Reason
from sublet.booking.model.request import Request, Window
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.shape import Amounts
from sublet.kernel.errors import LoginNeeded, PlatformRefused
from sublet.platforms.batch import fitting
from sublet.platforms.batch.commands import to_move_end
from sublet.platforms.batch.job import Submission
from sublet.platforms.batch.planning import LEEWAY, SitePlan, windows_ahead
from sublet.platforms.batch.probe import probe_site
from sublet.platforms.batch.reserving_platform import ReservingPlatform
from sublet.platforms.batch.scheduler import Answers, Scheduler
from sublet.platforms.batch.site import SiteNode, SiteQueue, by_queue, note_absent
from sublet.platforms.gridengine import commands as to
from sublet.platforms.gridengine import rows
from sublet.platforms.gridengine.options import (
    TAKEN,
    GridWish,
    find_indivisible,
    list_environments,
    words_for,
    words_to_reserve,
)
from sublet.platforms.gridengine.readers import GridQueue
from sublet.platforms.gridengine.scheduler import GRID_ENGINE
from sublet.platforms.gridengine.site import GridSite, plan_site, read_site
from sublet.platforms.port import Survey
from sublet.systems.model.probe import Live

AT_ONCE = 4  # queues that are considered for one request
UNCONTROLLED = "The parallel environment {environment} of {platform} lets jobs start nothing on their other nodes."
ONE_NODE = "nodes: 1, or ask its operators for one with control_slaves TRUE"
UNPLANNED = "; Grid Engine's jobs were not seen"


class GridEngine(ReservingPlatform):
    """A cluster with Grid Engine."""

    kind: ClassVar[str] = "gridengine"
    scheduler: ClassVar[Scheduler] = GRID_ENGINE
    starts_each_node: ClassVar[bool] = True
    terms: ClassVar[Literal["booked", "predicted", "remote"]] = "predicted"
    environment: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9_.-]*$",
        description="The parallel environment for several cores; empty: the first of the queue's that gives them.",
    )

    # Survey

    async def survey(self) -> Survey:
        """Return a survey that is at most `fresh` old; without a login, the last one."""
        await self._look_around()
        nodes = read_site(self._surveyor.said).nodes
        return self._surveyor.describe(nodes, *note_absent(nodes), *self._manners.notes)

    async def probe(self, tools: Mapping[str, str]) -> Live:
        """Ask for the site's queues, limits, nodes and tools now, which needs a login."""
        return await probe_site(self.name, self.kind, self.reach, self.scheduler, tools, self._read_site)

    def _read_site(self, answers: Answers) -> tuple[Sequence[SiteQueue], Sequence[SiteNode]]:
        site = read_site(answers)
        return [each.queue for each in site.queues], site.nodes

    def can_take(self, option: str) -> bool:
        """Whether the option is the queue or the project."""
        return option in TAKEN

    # Offers

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """Return an offer for each queue that fits, at the start that all jobs allow, and reservations if possible."""
        if closed := fitting.find_closed(request, self.name, self._manners.interactive, self.connects):
            return Answer(reasons=(closed,))
        await self._look_around()
        site = read_site(self._surveyor.said)
        wishes, reasons = self._list_wishes(request, site, fitting.beginning(request, now))
        if not wishes:
            return Answer(reasons=tuple(reasons))
        plan = await self._find_plan(site, now)
        answers = [self._predict(request, wish, plan, ways[0], now) for wish in wishes]
        if plan and not request.after and self.reservations:
            answers += await self.reserve_ahead(
                request, now, lambda window: self._reserve(request, wishes, plan, site, window, ways[0], now)
            )
        reasons += [each for each in answers if isinstance(each, Reason)]
        return fitting.answer([each for each in answers if isinstance(each, Offer)], reasons)

    def _list_wishes(
        self, request: Request, site: GridSite, begin: datetime | None
    ) -> tuple[list[GridWish], list[Reason]]:
        """Return what to request in each queue that the request fits in, or each queue's reason if none fits."""
        named = request.scheduler.queue or self.queue
        queues = [each for each in site.queues if not named or each.queue.name == named]
        there = by_queue([each.queue for each in queues], site.nodes)
        wishes: list[GridWish] = []
        reasons: list[Reason] = []
        for each in sorted(queues, key=lambda each: not each.queue.default):
            excess = fitting.find_excess(request, each.queue, there[each.queue.name], self.name)
            wish = excess or self._find_wish(request.least, each, site, begin, request.is_for_each_node)
            (reasons if isinstance(wish, Reason) else wishes).append(wish)  # type: ignore[arg-type]  # by its type
        if not queues:
            names = ", ".join(each.queue.name for each in site.queues)
            message = f"{self.name} has no queue {named}; it has: {names}."
            reasons.append(Reason("urn:not-supported", "platform", message, nearest=names, platform=self.name))
        return wishes[:AT_ONCE], [] if wishes else reasons

    def _find_wish(
        self, amounts: Amounts, queue: GridQueue, site: GridSite, begin: datetime | None, is_for_each_node: bool
    ) -> GridWish | Reason:
        wish = GridWish(queue.queue.name, amounts, begin=begin, longest=queue.queue.max_time)
        if why := find_indivisible(amounts, site.complexes):
            return Reason("urn:not-supported", "compute.gpus.min", f"{self.name}: {why}.", platform=self.name)
        if amounts.nodes == amounts.shape.cores == 1:
            return wish
        able = list_environments(amounts, queue, site.environments, self.environment)
        if is_for_each_node and amounts.nodes > 1 and able and not able[0].starts_tasks:
            message = UNCONTROLLED.format(environment=able[0].name, platform=self.name)
            return Reason("urn:not-supported", "executable.each_node", message, "true", "", ONE_NODE, self.name)
        if name := self.environment or (able[0].name if able else ""):
            return replace(wish, environment=name)
        cores = f"{amounts.shape.cores} cores on {'one node' if amounts.nodes == 1 else f'{amounts.nodes} nodes each'}"
        message = f"The queue {queue.queue.name} of {self.name} has no parallel environment that gives {cores}."
        return Reason("urn:not-supported", "compute.cores.min", message, platform=self.name)

    async def _find_plan(self, site: GridSite, now: datetime) -> SitePlan | None:
        """Return when the nodes are free; None while nobody is signed in."""
        try:
            jobs, reserved = await self.reach.run_all(to.to_plan())
        except LoginNeeded:
            return None
        if jobs.code:
            raise self.failures.explain(jobs)
        text = reserved.text if not reserved.code else ""
        others = rows.read_jobs_of_all(jobs.text, rows.read_reservation_names(text))
        return plan_site(site.nodes, others, rows.read_reservations(text), now)

    def _predict(
        self, request: Request, wish: GridWish, plan: SitePlan | None, way: str, now: datetime
    ) -> Offer | Reason:
        windows = windows_ahead(request, now)
        start = plan.find_start(wish.amounts, wish.limit, windows) if plan else wish.begin or now
        if start is None:
            return self._refuse_time()
        cut = wish.cut(min(request.parts, self._manners.parts))
        note = "" if plan else UNPLANNED
        return fitting.offer_for(GRID_ENGINE.title, request, cut, start, way, self.name, now, note)

    async def _reserve(
        self,
        request: Request,
        wishes: Sequence[GridWish],
        plan: SitePlan,
        site: GridSite,
        window: Window,
        way: str,
        now: datetime,
    ) -> Offer | Reason | None:
        return await self.reserve_by_plan(
            plan,
            lambda plan: self._reserve_by(request, wishes, plan, site, window, way, now),
            lambda: self._find_plan(site, now),
        )

    async def _reserve_by(
        self,
        request: Request,
        wishes: Sequence[GridWish],
        plan: SitePlan,
        site: GridSite,
        window: Window,
        way: str,
        now: datetime,
    ) -> Offer | Reason | None:
        alone = replace(request, windows=(window,), recurring=(), parts=1)
        is_named = request.platform == self.name

        async def reserve_in(wish: GridWish) -> Offer | Reason | None:
            start = plan.find_start(wish.amounts, wish.limit + LEEWAY, [window])
            if start is None:
                return self._refuse_time()
            why = "reserved, the earliest"
            offer = fitting.offer_for(GRID_ENGINE.title, alone, wish, start, way, self.name, now, why=why)
            if isinstance(offer, Reason):
                return offer
            return await self.reserve(offer, words_to_reserve(wish, site.complexes, offer.start), is_named)

        return await self.reserve_in_first(wishes, reserve_in, is_named)

    def _refuse_time(self) -> Reason:
        message = f"{self.name}: there is no room for it in the time asked for."
        return Reason("urn:window-passed", "schedule", message, platform=self.name)

    # Jobs

    async def submit(self, job: Job, key: str) -> str:
        """Send staged data and submit the job, into its reservation if it has one."""
        self.check_connects(job)
        await self._look_around()
        site = read_site(self._surveyor.said)
        amounts = replace(job.amounts, time=max(timedelta(seconds=1), job.until - datetime.now(UTC)))
        wish = self._wish_of(job, amounts, site)
        self.check_room(key)
        asked: SchedulerOptions = replace(job.scheduler, project=job.scheduler.project or self.project)
        log = f"{await self.session_directory(key)}/gridengine.log"
        words: tuple[str, ...] = (*words_for(wish, site.complexes, asked), "-o", log)
        if job.reservation:
            words = ("--reserved", *words)
            self.take_reservation(job.reservation)
        return await self.submit_once(job, key, Submission(words, wish.amounts, wish.limit))

    def _wish_of(self, job: Job, amounts: Amounts, site: GridSite) -> GridWish:
        """Return what to request for a job that was offered before; raise PlatformRefused if no queue fits."""
        named = job.scheduler.queue or self.queue
        queues = [each for each in site.queues if not named or each.queue.name == named]
        wishes = [self._find_wish(amounts, each, site, job.begin, job.program.each_node) for each in queues]
        able = [each for each in wishes if isinstance(each, GridWish)]
        if able:
            return able[0] if named else replace(able[0], queue="")
        why = next((each.message for each in wishes if isinstance(each, Reason)), f"it has no queue {named}")
        raise PlatformRefused(platform=self.name, why=why)

    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of a job's time within Grid Engine's own limit, which can't be changed while it runs."""
        if not await self.must_move_end(id, until):
            return
        limit = self.find_time_limit(id, LEEWAY)
        if until + self.grace > limit:
            raise PlatformRefused(platform=self.name, why="Grid Engine keeps the time limit (h_rt) of a job that runs")
        await self.reach.run(to_move_end(self.failures, await self.root(), id, round(until.timestamp())))
