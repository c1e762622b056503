"""Slurm, through its command line: sbatch, squeue, scancel; on this machine, or on one that is reached over OpenSSH.

What it leaves on a system, and how its jobs are run and watched there, is described in `platforms/batch/`. A job's name
in the queue is its session's key. Where a person may make reservations (as one of Slurm's operators), and the settings
allow it, offers can also be *booked*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from sublet.booking.model.choices import find_lacking
from sublet.booking.model.job import Job
from sublet.booking.model.offer import Answer, Offer, Reason
from sublet.booking.model.phases import Phase
from sublet.booking.model.request import Request, Window
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.kernel.errors import LoginNeeded, PlatformRefused, PlatformUnreachable
from sublet.platforms.batch import fitting
from sublet.platforms.batch.commands import to_move_end
from sublet.platforms.batch.fields import Name, is_name
from sublet.platforms.batch.job import Submission
from sublet.platforms.batch.reserving_platform import ReservationCount, ReservingPlatform
from sublet.platforms.batch.scheduler import Scheduler
from sublet.platforms.batch.site import SiteQueue, by_queue
from sublet.platforms.port import Survey
from sublet.platforms.slurm import commands as to
from sublet.platforms.slurm import offers as offering
from sublet.platforms.slurm import readers as read
from sublet.platforms.slurm.offers import Site
from sublet.platforms.slurm.options import (
    ALLOWED,
    SlurmAccount,
    SlurmWish,
    comment,
    flags,
    option_name,
    refusals,
    wckey,
    wrong,
)
from sublet.platforms.slurm.probe import probe
from sublet.platforms.slurm.queues import open_to, partitions
from sublet.platforms.slurm.reserving import reservation_name, words_to_reserve
from sublet.platforms.slurm.scheduler import SLURM
from sublet.platforms.slurm.site import describe_site, read_site
from sublet.systems.model.pilot_config import Additions
from sublet.systems.model.probe import Live

LAST_RESORT = "podman"  # its store is in the home directory, which nodes share


def _options(words: tuple[str, ...]) -> tuple[str, ...]:
    if problems := wrong(words):
        raise ValueError("; ".join(problems))
    return words


class Slurm(ReservingPlatform):
    """A cluster with Slurm."""

    kind: ClassVar[str] = "slurm"
    scheduler: ClassVar[Scheduler] = SLURM
    runs_mpi: ClassVar[bool] = True
    starts_each_node: ClassVar[bool] = True
    addable_options: ClassVar[frozenset[str]] = ALLOWED
    terms: Literal["booked", "predicted"] = Field(  # type: ignore[misc]  # elsewhere fixed, here a setting
        default="predicted",
        description="`predicted`: a queue that others share. `booked`: `reservation` or `queue` is Sublet's alone.",
    )
    qos: Name = Field(default="", description="The quality of service to ask for.")
    reservation: Name = Field(default="", description="The reservation to run in.")
    reservations: ReservationCount = Field(
        default=0,
        ge=0,
        description="How many reservations may be held there at once for offers that are not accepted yet (`yes`: "
        "4); 0 or `no`: none. Slurm requires operator or administrator rights; `system probe` says "
        "whether you have them.",
    )
    options: Annotated[tuple[str, ...], AfterValidator(_options)] = Field(
        default=(), description="More options for sbatch, as `--licenses=matlab:1`; what Sublet says itself is refused."
    )
    wckey: bool = Field(
        default=False,
        description="Whether each job's wckey names the person, as its comment does; the site must track wckeys.",
    )

    # Survey

    async def survey(self) -> Survey:
        """Return a survey that is at most `fresh` old; without a login, the last one and its age."""
        await self._look_around()
        site = read_site(self._surveyor)
        own = SchedulerOptions(queue=self.queue, project=self.project, reservation=self.reservation)
        names = partitions(site, self._queues(site, own))
        survey = describe_site(self._surveyor, site, names, self.reservation)
        return replace(survey, notes=(*survey.notes, *self._manners.notes))

    def _queues(self, site: Site, asked: SchedulerOptions) -> list[SiteQueue]:
        return open_to(site, asked.queue, asked.project, asked.reservation, self.queues)

    async def probe(self, tools: Mapping[str, str]) -> Live:
        """Ask for the site's queues, limits, nodes, accounts and tools now, which needs a login."""
        return await probe(self.name, self.reach, tools)

    # Offers

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """Return one offer for each queue that fits, at the time that Slurm plans, or each queue's reason."""
        if closed := fitting.find_closed(request, self.name, self._manners.interactive, self.connects):
            return Answer(reasons=(closed,))
        await self._look_around()
        site = read_site(self._surveyor)
        account = self._account(request.scheduler)
        named = account.asked.queue
        queues = self._queues(site, account.asked)
        if not queues:
            names = ", ".join(self.queues or [each.name for each in site.queues])
            message = f"{self.name} has no queue {named} that can be used; it has: {names}."
            return Answer(
                reasons=(Reason("urn:not-supported", "platform", message, nearest=names, platform=self.name),)
            )
        if untyped := fitting.find_untyped(request, site.nodes, self.name):
            return Answer(reasons=(untyped,))
        wishes, reasons = offering.fitting(request, site, queues, self.name, fitting.beginning(request, now))
        wishes = [wish.cut(self._parts(request, wish, site, account)) for wish in wishes]
        way = min(ways, key=lambda name: name == LAST_RESORT)
        asks, note = offering.asks_for(request, wishes, now), offering.UNASKED
        asked = asks[: offering.MOST_PLANS]
        try:
            plans = await self.reach.run_all([to.to_plan(flags(ask.wish, account)) for ask in asked])
        except LoginNeeded:
            plans, note = [], f"; as seen on {site.as_of:%Y-%m-%d %H:%M} UTC"
        offers = [self._offer(ask, plan, way, site, now) for ask, plan in zip(asked, plans, strict=False)]
        for wanted, wish, why in asks[len(plans) :]:
            offers.append(fitting.offer_for(SLURM.title, wanted, wish, now, way, self.name, now, note, why))
        lacking = find_lacking(account.asked, site.choices, self.name) if wishes else None
        if lacking and not (plans and any(isinstance(each, Offer) for each in offers)):  # features come and go
            return Answer(reasons=(lacking,))
        if self.reservations and plans and not (request.after or account.asked.reservation):
            offers += await self.reserve_ahead(
                request, now, lambda window: self._reserve(request, wishes, site, account, window, way, now)
            )
        reasons += [each for each in offers if isinstance(each, Reason)]
        answer = fitting.answer([each for each in offers if isinstance(each, Offer)], reasons)
        there = by_queue(queues, site.nodes)
        return fitting.state_gpus(answer, request, lambda offer: there.get(offer.queue, ()))

    def _parts(self, request: Request, wish: SlurmWish, site: Site, account: SlurmAccount) -> int:
        """Return the number of parts: as many as the kind wants, the settings allow and the site accepts."""
        most = offering.most_parts(site, wish.partition or wish.queue, account, self._watch.count())
        return min(request.parts, self._manners.parts, most)

    def _offer(self, ask: offering.Ask, plan: Any, way: str, site: Site, now: datetime) -> Offer | Reason:
        words = plan.stderr.decode("utf-8", "replace")
        planned = read.read_plan(words)
        if planned:
            start = planned.start
            return fitting.offer_for(SLURM.title, ask.request, ask.wish, start, way, self.name, now, why=ask.why)
        if isinstance(failure := self.failures.explain(plan), PlatformUnreachable):
            raise failure
        return offering.refusal(ask.wish, words, site, self.name, now)

    async def _reserve(
        self,
        request: Request,
        wishes: Sequence[SlurmWish],
        site: Site,
        account: SlurmAccount,
        window: Window,
        way: str,
        now: datetime,
    ) -> Offer | Reason | None:
        alone = replace(request, windows=(window,), recurring=(), parts=1)
        is_named = request.platform == self.name

        async def reserve_in(wish: SlurmWish) -> Offer | Reason | None:
            wanted = replace(wish.cut(1), begin=window.start)
            outcome = await self.reach.run(to.to_plan(flags(wanted, account)))
            words = outcome.stderr.decode("utf-8", "replace")
            plan = read.read_plan(words)
            if plan is None or not plan.nodes:
                return offering.refusal(wanted, words, site, self.name, now)
            why = "reserved, the earliest"
            offer = fitting.offer_for(SLURM.title, alone, wanted, plan.start, way, self.name, now, why=why)
            if isinstance(offer, Reason):
                return offer
            named = wish.partition or wish.queue
            queue = next((each for each in site.queues if each.name == named), None)
            pairs = words_to_reserve(wanted, account, replace(plan, start=offer.start), queue, site.config)
            return await self.reserve(offer, pairs, is_named)

        return await self.reserve_in_first(wishes, reserve_in, is_named)

    def unfit(self, request: Request) -> Sequence[Reason]:
        """Return why nobody could connect, and the scheduler options that the site or booked nodes don't take."""
        asked = request.scheduler if request.scheduler.queue != self.queue else replace(request.scheduler, queue="")
        refused = refusals(asked, self.refuses, is_booked=self.terms == "booked")
        return [
            *super().unfit(request),
            *(
                Reason("urn:not-supported", field, f"{self.name}: {field}: {why}.", nearest=f"leave {field} out")
                for field, why in refused
            ),
        ]

    def can_take(self, option: str) -> bool:
        """Whether the option is supported: sbatch takes all of them."""
        return True

    def _account(self, asked: SchedulerOptions) -> SlurmAccount:
        """Return the options that a job has besides its amounts; those of the request override the settings."""
        for word in (asked.project, asked.qos):
            if not is_name(word):
                raise PlatformRefused(platform=self.name, why=f"{word!r} can't be a name that Slurm knows")
        qos = self.queues.get(asked.queue or self.queue, {}).get("qos", "") or self.qos
        usual = SchedulerOptions(self.queue, qos, self.project, self.constraint, reservation=self.reservation)
        mine = {name for name, _ in asked.words()}
        options = tuple(word for word in self.options if option_name(word) not in mine)
        return SlurmAccount(asked.over(usual), options, self.refuses)

    # Jobs

    @property
    def chains(self) -> bool:
        """Whether jobs can wait for others in Slurm's queue, where they gain priority by age.

        A site may refuse this.
        """
        return "dependency" not in self.refuses

    async def _ids(self, keys: Sequence[str]) -> tuple[str, ...]:
        """Return Slurm's own IDs of those jobs that haven't succeeded yet."""
        states = await self.ask(keys) if keys else {}
        ends = {key: states[key].end for key in keys}
        left = [key for key, end in ends.items() if end is None or end.phase is not Phase.COMPLETED]
        ids = {key: self._watch.find_number(key) for key in left}
        for key in (key for key, id in ids.items() if not id):
            raise PlatformUnreachable(platform=self.name, why=f"the number of the Slurm job {key} is not known yet")
        return tuple(ids.values())

    async def submit(self, job: Job, key: str) -> str:
        """Send staged data and submit the job."""
        self.check_connects(job)
        root, wish = await self.root(), await self._wish(job, key)
        self.check_room(key)
        log = f"{root.replace('%', '%%')}/sessions/{key}/{'slurm-%a' if job.amounts.parts > 1 else 'slurm'}.log"
        words = (
            *flags(wish, self._account(job.scheduler)),
            *(("--no-kill",) if job.program.outlives_nodes else ()),
            *((f"--reservation={reservation_name(job.reservation)}",) if job.reservation else ()),
            f"--output={log}",
            "--open-mode=append",
        )
        if job.reservation:
            self.take_reservation(job.reservation)
        return await self.submit_once(job, key, Submission(words, wish.amounts, wish.limit))

    async def _wish(self, job: Job, key: str) -> SlurmWish:
        await self._look_around()
        site = read_site(self._surveyor)
        queues = self._queues(site, self._account(job.scheduler).asked)
        wish = offering.wish_of(job, site, queues, self.name, datetime.now(UTC))
        who = wckey(job.person) if self.wckey else ""
        text = comment(job.person, job.name, key)
        return replace(wish, after=await self._ids(job.after), comment=text, wckey=who)

    async def extend(self, id: str, until: datetime) -> None:
        """Move the end of a job's time, and Slurm's own limit too if necessary."""
        if not await self.must_move_end(id, until):
            return
        rows = await self.reach.run(to.to_limit(id))
        starts = [row.start for row in rows if row.start and row.end and until + self.grace > row.end]
        minutes = -(-(until + timedelta(minutes=1) - min(starts)) // timedelta(minutes=1)) if starts else 0
        limit = [to.to_move_limit(self.failures, id, minutes)] if minutes else []  # Slurm's first
        await self.reach.run_all([*limit, to_move_end(self.failures, await self.root(), id, round(until.timestamp()))])

    @property
    def additions(self) -> Additions:
        """Options for sbatch, and configuration lines for its pilots."""
        return Additions(self.options, self.pilot)

    async def give_back(self, id: str, nodes: Sequence[str]) -> None:
        """Have Slurm release some of a job's nodes; the first node stays, as the job's script runs there."""
        await self._pace.take()
        await self.reach.run(to.to_give_back(self.failures, await self.root(), self._guest.check_key(id), nodes))
        self._watch.stir()
