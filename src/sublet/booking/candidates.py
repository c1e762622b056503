"""Which platforms could run a request, and why the others can't, before any calendar is searched."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from sublet.access.model.access_words import cap_request
from sublet.access.model.bounds import Bounds, names_of
from sublet.booking.asked import Asked
from sublet.booking.brokers.carrying import Carrying
from sublet.booking.brokers.forwarding import Forwarding, is_named, names_broker
from sublet.booking.candidate import Candidate, describe_failure, refuse_drained
from sublet.booking.fitness import find_unfit
from sublet.booking.model.answers import date_reasons, find_fault
from sublet.booking.model.limits import check_metrics, drop_unaffordable
from sublet.booking.model.offer import EXECUTABLE_REQUIRED, IGNORED, Reason
from sublet.booking.model.offers import WayFacts
from sublet.booking.model.request import Executable, Request
from sublet.booking.model.scheduler import Spec
from sublet.booking.model.scheduler_rules import find_refused, list_choosable
from sublet.booking.model.staging import StagingEstimate
from sublet.booking.pending import Pending
from sublet.booking.platforms.drains_seen import DrainsSeen
from sublet.booking.platforms.known import KnownPlatforms, needs_login
from sublet.booking.ports import (
    Bar,
    CredentialSource,
    GuestPlatforms,
    OfferLimits,
    PlaceSource,
    Projects,
    TransferHistory,
)
from sublet.data.estimating import StagingPlan, find_there, must_be_asked, plan_staging
from sublet.data.executables import ExecutableKinds, Movers
from sublet.data.whereabouts import EntryFinder
from sublet.kernel.clock import Clock
from sublet.kernel.deadline import gather_few, gather_within
from sublet.kernel.errors import PlatformBroken
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.platforms.brokering import PassesOn, is_broker
from sublet.platforms.caching import has_cache
from sublet.platforms.port import Platform, Survey
from sublet.store.store import Store

OUTSIDE = "permission to run outside a container"
NAMED = 4  # times as long to wait for a platform that the request names: no other offers are delayed
UNINVITED = Reason(
    "urn:not-allowed",
    "platform",
    "Nothing is shared with you here.",
    nearest="an annex that its owner shares: sublet annex share NAME PERSON",
)


@dataclass
class Candidates:
    """The search for platforms that could run a request."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    kinds: ExecutableKinds
    movers: Movers
    drains_seen: DrainsSeen
    guests: GuestPlatforms
    limits: OfferLimits
    bars: Sequence[Bar]
    credentials: CredentialSource
    places: PlaceSource
    transfers: TransferHistory
    forwarding: Forwarding
    projects: Projects
    takes_any_option: bool  # people may use every scheduler option, not only those that the settings allow
    carrying: Carrying

    entry_finder: EntryFinder = field(default_factory=EntryFinder)
    pending: Pending = field(default_factory=Pending)  # requests whose platforms have not all answered yet

    @property
    def has_brokers(self) -> bool:
        """Whether requests are passed on to other brokers."""
        return any(is_broker(platform) for platform in self.platforms.by_name.values())

    async def find(self, asked: Asked, person: Person) -> tuple[list[Candidate], list[Reason]]:
        """Return the platforms that could run a request, and the reasons why others can't."""
        if known := self.forwarding.find_loop(asked) or self.forwarding.find_repeat(asked, person):
            return [], [known]
        open_to = await self.open_to(person, asked.request.platform)
        brokers = {name: platform for name, platform in open_to.items() if is_broker(platform)}
        if not brokers or asked.request.executable is None:
            return await self._find_here(asked, person, open_to)
        here = {name: platform for name, platform in open_to.items() if name not in brokers}
        if not here or names_broker(asked.request, list(brokers)):
            return await self._find_elsewhere(asked, person, open_to, brokers)
        near, far = await asyncio.gather(
            self._find_here(asked, person, here), self._find_elsewhere(asked, person, open_to, brokers)
        )
        return [*near[0], *far[0]], [*near[1], *far[1]]

    async def _find_elsewhere(
        self, asked: Asked, person: Person, open_to: Mapping[str, Platform], brokers: Mapping[str, PassesOn]
    ) -> tuple[list[Candidate], list[Reason]]:
        """Pass a request on to other brokers, even one that this service itself can't run, and return their offers."""
        wanted = asked.request.platform
        chosen = {name: open_to[name] for name in brokers if not wanted or is_named(wanted, name)}
        bounds, refused = await self._find_bounds(person, chosen, replace(asked.request, platform=""))
        if asked.passable is None:
            return [], [*asked.reasons, *refused]
        carried = await self.carry(asked, person)
        if isinstance(carried, Reason):
            return [], [*refused, *(replace(carried, platform=name) for name in bounds)]
        with self.pending.waiting_for(person.name, self.now()) as waiting:
            candidates, noes = await self.forwarding.find(
                carried, person, {name: brokers[name] for name in bounds}, bounds, self._find_limit(asked), waiting
            )
        return candidates, [*refused, *noes]

    async def carry(self, asked: Asked, person: Person) -> Asked | Reason:
        """Return a request in a form that other brokers can be sent, or the reason why it can't be passed on."""
        if objection := self.forwarding.find_objection(asked):
            return objection
        return await self.carrying.carry(asked, person, await self._movers_for(person, asked.request, None))

    def _find_limit(self, asked: Asked) -> timedelta:
        """Return how long each platform may take to answer: no longer than the asker waits."""
        limit = self.settings.answer_within * (NAMED if asked.request.platform else 1)
        return min(limit, asked.within) if asked.within else limit

    async def _find_here(
        self, asked: Asked, person: Person, open_to: dict[str, Platform]
    ) -> tuple[list[Candidate], list[Reason]]:
        """Return the platforms, other than brokers, that could run a request, and why the others can't."""
        request, executable = asked.request, asked.request.executable
        reasons = [*asked.reasons]
        if executable is None:
            return [], reasons or [EXECUTABLE_REQUIRED]
        kind = self.kinds.by_name.get(executable.kind)
        if kind is None:
            known = ", ".join(sorted(self.kinds.by_name))
            why = f"No kind of executable called {executable.kind} is known here; these are: {known}."
            reasons.append(Reason("urn:unknown-kind", "executable.kind", why, executable.kind, known, "command"))
            return [], reasons
        bounds, refused = await self._find_bounds(person, open_to, request)
        if refused and not bounds:
            return [], [*reasons, *refused]
        if asked.unresolved:
            return [], reasons
        problems = kind.check(executable, request)
        remarks = [reason for reason in problems if reason.kind == IGNORED]
        wrong = [reason for reason in problems if reason.kind != IGNORED]
        look = any(not platform.plays for platform in self.platforms.by_name.values())
        movers = await self._movers_for(person, request, None if wrong else executable)
        plan, data_reasons = await plan_staging(
            self.kinds,
            movers,
            None if wrong else executable,
            request,
            guest=person.guest,
            look=look,
            finder=self._choose_finder(bounds, person),
            person=person.name,
        )
        reasons += [*wrong, *data_reasons]
        if reasons:
            return [], [*reasons, *remarks]
        if not open_to:
            return [], [UNINVITED]
        if plan.items:
            plan = replace(plan, history=await self.transfers.list_recent())
        candidates, noes = await self._consult_all(open_to, bounds, asked, plan, person)
        reasons += [*refused, *noes]
        if not candidates and not reasons:
            names = ", ".join(open_to)
            why = f"There is no platform {request.platform} here; there are: {names}."
            reasons.append(Reason("urn:invalid-value", "platform", why, request.platform, names, names))
        return candidates, [*reasons, *remarks]

    def _choose_finder(self, names: Collection[str], person: Person) -> EntryFinder | None:
        """Return the finder of cache entries, if one of these platforms has a cache that this person can use."""
        platforms = (self.platforms.by_name.get(name) for name in names)
        can_find = not person.guest and any(has_cache(platform) for platform in platforms)
        return self.entry_finder if can_find else None

    async def _movers_for(self, person: Person, request: Request, executable: Executable | None) -> Movers:
        """Return movers with the person's own storage credentials, if there is anything to transfer."""
        if person.guest or not (request.outputs or self.kinds.inputs_of(executable, request.data)):
            return self.movers
        return self.movers.with_credentials(await self.credentials.open(person.name))

    async def open_to(self, person: Person, wanted: str = "") -> dict[str, Platform]:
        """Return the platforms that are open to a person; for a guest, those that are shared with them now.

        The one that is `wanted` may have been added a moment ago.
        """
        await self.platforms.open_if_new(wanted)
        invited = await self.guests.list_shared_with(person) if person.guest else set()
        return {
            name: platform
            for name, platform in self.platforms.by_name.items()
            if (name in invited if person.guest else platform.serves(person.name))
        }

    async def find_refusals(
        self, person: Person, open_to: Mapping[str, Platform], request: Request
    ) -> dict[str, Reason]:
        """Return the platforms that a request can't use in any way, each with the first reason."""
        bounds, refused = await self._find_bounds(person, open_to, request)
        reasons = {reason.platform: reason for reason in reversed(refused)}
        for name, most in bounds.items():
            if not is_broker(open_to[name]) and (no := self._find_objection(open_to[name], request, most)):
                reasons[name] = no
        return reasons

    async def _find_bounds(
        self, person: Person, open_to: Mapping[str, Platform], request: Request
    ) -> tuple[dict[str, Bounds], list[Reason]]:
        """Return the asker's limits on each platform that they may use, and why they may not use the others."""
        bounds: dict[str, Bounds] = {}
        refused: list[Reason] = []
        now = self.now()
        drains = await self.drains_seen.read(self.store, now)
        projects = await self.projects.list_projects() if request.scheduler.project else frozenset()
        names = [
            name
            for name, platform in open_to.items()
            if request.platform == name or not (request.platform or platform.asleep)
        ]
        judged = await gather_few(*(self.limits.bounds(person, name, request) for name in names))
        for name, limits in zip(names, judged, strict=True):
            limits = refuse_drained(drains[name]) if name in drains and not isinstance(limits, Reason) else limits
            if isinstance(limits, Reason):
                refused.append(replace(limits, platform=name))
            else:
                bounds[name] = replace(limits, projects=projects) if projects else limits
        without = await self.places.find_refusals(person, [open_to[name] for name in bounds], request)
        kept = {name: most for name, most in bounds.items() if name not in without}
        return kept, [*refused, *without.values()]

    def _find_bar(self, platform: str, executable: Executable) -> Reason | None:
        reasons = (bar.find_bar(platform, executable) for bar in self.bars)
        return next((reason for reason in reasons if reason), None)

    def _find_unnameable(self, platform: Platform, request: Request, most: Bounds) -> Reason | None:
        """Return why the request's pledge or scheduler options can't be used on a platform, or None."""
        name = platform.name
        if request.pledge and request.pledge not in (known := names_of(self.platforms.pledges.settings_of(name))):
            there = ", ".join(known)
            message = f"{name} has no pledge {request.pledge}{f'; it has: {there}' if there else ''}."
            return Reason("urn:not-supported", "pledge", message, request.pledge, there, there or "leave it out", name)
        options = request.scheduler
        asked = replace(options, project="") if options.project in most.projects else options
        return find_refused(asked, name, platform.can_take, self._allowed_options)

    def list_options(self, names: Collection[str]) -> tuple[Spec, ...]:
        """List the scheduler options that can be chosen on at least one of these platforms."""
        platforms = [platform for name, platform in self.platforms.by_name.items() if name in names]
        return list_choosable(
            lambda option: any(platform.can_take(option) for platform in platforms), self._allowed_options
        )

    @property
    def _allowed_options(self) -> Collection[str] | None:
        """The scheduler options that a gateway's operator lets people choose, or None for all."""
        return None if self.takes_any_option else self.settings.scheduler_options

    async def _consult_all(
        self,
        open_to: Mapping[str, Platform],
        bounds: Mapping[str, Bounds],
        asked: Asked,
        plan: StagingPlan,
        person: Person,
    ) -> tuple[list[Candidate], list[Reason]]:
        """Ask all platforms at once, each with a time limit; one that is late or fails becomes a reason."""
        request = asked.request
        known = {name: self._find_known(open_to[name], request, most, plan, person) for name, most in bounds.items()}
        questions = {
            name: self._consult(open_to[name], request, bounds[name], plan, person)
            for name, answer in known.items()
            if answer is None
        }
        limit = self._find_limit(asked)
        answers: Mapping[str, Candidate | Reason | BaseException] = {}
        if questions:
            with self.pending.waiting_for(person.name, self.now()) as waiting:
                answers = await gather_within(questions, limit.total_seconds(), waiting)
        candidates: list[Candidate] = []
        reasons: list[Reason] = []
        for name in known:
            answer = known[name] or answers[name]
            if isinstance(answer, Candidate):
                candidates.append(answer)
            else:
                reasons.append(answer if isinstance(answer, Reason) else describe_failure(name, answer, limit))
        return candidates, reasons

    def _find_known(
        self, platform: Platform, request: Request, most: Bounds, plan: StagingPlan, person: Person
    ) -> Candidate | Reason | None:
        """Return the answer of a platform with our calendar and a fresh survey, or None if it must be asked."""
        if (
            platform.terms != "booked"
            or platform.login is not None
            or not (survey := self.platforms.find_fresh(platform.name))
            or must_be_asked(platform, plan)
        ):
            return None
        if no := self._find_objection(platform, plan.tell_sizes(request), most):
            return no
        executable: Any = request.executable
        try:
            candidate = self._candidate(platform, survey, executable, plan.estimate(platform), person)
        except Exception:  # of a plug-in: `_consult` meets the error again, and reports it
            return None
        if isinstance(candidate, Reason):
            return date_reasons([candidate], survey.as_of, self.now())[0]
        return replace(candidate, bounds=most)

    def _find_objection(self, platform: Platform, request: Request, most: Bounds) -> Reason | None:
        """Return why a platform need not be asked, or None."""
        executable: Any = request.executable
        return (
            self._find_unnameable(platform, request, most)
            or find_unfit(platform, request)
            or self._find_bar(platform.name, executable)
        )

    async def _consult(
        self, platform: Platform, request: Request, most: Bounds, plan: StagingPlan, person: Person
    ) -> Candidate | Reason:
        """Ask one platform for a way to run a request and, if its calendar isn't ours, for its offers."""
        executable: Any = request.executable
        name = platform.name
        if no := self._find_objection(platform, plan.tell_sizes(request), most):
            return no
        moment = self.settings.answer_within.total_seconds() / 4
        survey, there = await asyncio.gather(self._last_seen(name), find_there(platform, plan, moment))
        self.platforms.get(name)  # raises if it was removed meanwhile
        candidate = self._candidate(platform, survey, executable, plan.estimate(platform, there), person)
        if isinstance(candidate, Reason):
            return date_reasons([candidate], survey.as_of, self.now())[0]
        if platform.terms == "booked":
            return replace(candidate, bounds=most, needs_login=await needs_login(platform))
        if slow := check_metrics(request, survey.metrics, name):
            return slow[0]
        parts = self.kinds.by_name[executable.kind].parts(executable, request.compute.cores.min)
        wanted = cap_request(replace(request, parts=parts, metrics=()), most.limits)
        ways = [way.name for way in candidate.ways]
        answer = await platform.offers(wanted, ways, self.now())
        if fault := find_fault(answer, name, ways, wanted):
            raise PlatformBroken(platform=name, why=fault)
        offers = tuple(
            replace(offer, metrics=survey.metrics or offer.metrics, scheduler=request.scheduler)
            for offer in answer.offers
        )
        answer = drop_unaffordable(replace(answer, offers=offers), request, name)
        login = bool(answer.offers) and await needs_login(platform)
        return replace(candidate, bounds=most, answer=answer, needs_login=login)

    async def _last_seen(self, name: str) -> Survey:
        """Survey a platform, or return its last survey if that takes too long."""
        try:
            async with asyncio.timeout(self.settings.answer_within.total_seconds() / 2):
                return await self.platforms.survey(name)
        except TimeoutError:
            last = self.platforms.surveys.get(name)
            return last or await self.platforms.survey(name)

    def _candidate(
        self, platform: Platform, survey: Survey, executable: Executable, staging: StagingEstimate, person: Person
    ) -> Candidate | Reason:
        name = platform.name
        ways = [way for way in self.kinds.ways(executable, survey.tools) if way.contained or not person.guest]
        if ways:
            facts = tuple(WayFacts(way.name, way.prepare) for way in ways)
            interactive = frozenset(way.name for way in ways if way.interactive)
            return Candidate(name, platform, survey, facts, staging, interactive)
        kind = self.kinds.by_name[executable.kind]
        has_tools = bool(kind.ways(executable, survey.tools))
        only = "a gateway runs containers only" if self.kinds.contained_only else ""
        only = "it is shared with you for containers only" if person.guest else only
        needs = kind.needs(executable)
        if only and kind.outside:
            needs = OUTSIDE if has_tools else f"{needs}, and {OUTSIDE}"
        why = f"{name} can't run {executable.kind} sessions{f' ({only})' if only else ''}; that needs {needs}."
        nearest = f"a platform with {needs}{', or a container: name its image' if only else ''}"
        if kind.extra and platform.is_here and not only:
            nearest = f"pip install 'sublet[{kind.extra}]' where the service runs, which finds it within a minute"
        return Reason("urn:not-supported", "executable.kind", why, executable.kind, needs, nearest, name)
