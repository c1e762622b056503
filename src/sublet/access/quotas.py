"""Quotas: what the access rules allow, checked before an offer is made and again when it is accepted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction
from typing import ClassVar

from sublet.access.model.access import (
    NO_LIMITS,
    AccessTarget,
    Decision,
    Limits,
    Use,
    Who,
    decide,
    lowest,
    month_of,
)
from sublet.access.model.access_words import NOT_ALLOWED, TOO_MUCH, excesses, insist, refusal
from sublet.access.model.bounds import Bounds, names_of, portion
from sublet.booking.asked import Asked
from sublet.booking.model.offer import Offer, Reason
from sublet.booking.model.pledge import OPEN, shares
from sublet.booking.model.request import Request
from sublet.booking.model.session import OfferSet, Session
from sublet.booking.model.shape import TotalAmounts
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import AppRefused, SubletError, TooMany
from sublet.kernel.settings import Settings
from sublet.kernel.throttle import Throttle
from sublet.people.model.person import Person
from sublet.people.same_mailbox import identities_of_all, rule_names
from sublet.store.store import Store
from sublet.store.tx import Tx

WHOLE = Fraction(1)


@dataclass(frozen=True, slots=True)
class QuotaClaim:
    """What a session uses of a target, and whether a pledge admits it there."""

    target: AccessTarget
    part: Fraction = WHOLE
    let_in: bool = False  # admitted by a pledge: of the rules about the target only the denies count


def decide_by_rules(tx: Tx, who: Who, target: AccessTarget, now: datetime, *, let_in: bool = False) -> Decision:
    """Return whether a person may use a target, by the rules in this transaction."""
    return decide(tx.rules.list(target[0]), who, *target, now, let_in=let_in)


def who_is(tx: Tx, person: str, now: datetime) -> Who:
    """Return a person as the rules see them now: all their names and groups."""
    known = identities_of_all(tx, person)
    groups = (group for name in known for group in tx.groups.everywhere(name, now))
    return Who(rule_names(known), frozenset(groups), tuple(known))


def count_use(tx: Tx, who: Who, target: AccessTarget, now: datetime) -> Use:
    """Return what a person uses of a target this month, under all their names."""
    uses = [tx.uses.of(name, *target, month_of(now)) for name in who.people]
    return Use(sum(use.jobs for use in uses), sum(use.hours for use in uses))


@dataclass
class OpenAccess:
    """Access without rules, as on a personal service: everyone may use everything, and nothing is counted."""

    platforms: KnownPlatforms

    is_open: ClassVar[bool] = True

    async def find_refusal(
        self, person: Person, noun: str, name: str, wanted: TotalAmounts | None = None
    ) -> Reason | None:
        """Return None: nothing is refused."""
        return None

    async def find_closed(self, person: Person) -> Mapping[str, Decision]:
        """Return an empty mapping: no platform is closed."""
        return {}

    async def bounds(self, person: Person, platform: str, request: Request) -> Bounds | Reason:
        """Return bounds without limits, for every pledge."""
        return Bounds(pledges=dict.fromkeys(names_of(self.platforms.pledges_of(platform)), NO_LIMITS))

    def limit_asking(self, person: Person) -> None:
        """Do nothing: requests aren't limited."""

    def limit_holds(self, person: Person) -> int | None:
        """Return None: held offers aren't limited."""
        return None

    async def note_answer(self, person: Person, asked: Asked, answer: OfferSet) -> None:
        """Do nothing: there are no rules."""

    async def note_refusal(self, act: str, person: Person, error: SubletError, **about: str) -> None:
        """Do nothing: there are no rules."""

    def admit(self, tx: Tx, session: Session, now: datetime) -> None:
        """Admit every session."""

    def admit_longer(self, tx: Tx, session: Session, offer: Offer, now: datetime) -> None:
        """Admit every extension."""

    def judge(self, tx: Tx, person: str, target: AccessTarget, now: datetime) -> tuple[Decision, Use]:
        """Allow everything."""
        return Decision(*target, True), Use()


@dataclass
class RuledAccess:
    """Access by rules: who may use what and how much, enforced by the service for every request."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    throttle: Throttle

    is_open: ClassVar[bool] = False

    async def find_refusal(
        self, person: Person, noun: str, name: str, wanted: TotalAmounts | None = None
    ) -> Reason | None:
        """Return why a person may not use this target, or so much of it, now; None if they may use at least a part."""
        pledges = (
            tuple(self.platforms.pledges_of(name)) if noun == self.platforms.noun_of(name) and wanted is None else ()
        )

        def work(tx: Tx) -> Reason | None:
            now = self.now()
            who = who_is(tx, person.name, now)
            if any(decide_by_rules(tx, who, ("pledge", pledge), now).allowed for pledge in pledges):
                return refusal(decide_by_rules(tx, who, (noun, name), now, let_in=True))
            return _find_refusal(tx, who, (noun, name), wanted, now)

        return await self.store.read(work)

    async def find_closed(self, person: Person) -> Mapping[str, Decision]:
        """Return the platforms that a person may not use, and why; none for operators."""
        if person.operator:
            return {}

        def work(tx: Tx) -> dict[str, Decision]:
            rules, now = tx.rules.list(), self.now()
            who = who_is(tx, person.name, now)

            def judged(label: str) -> Decision:
                noun, _, name = label.rpartition(" ")  # a broken platform may be labelled `account keeling`
                target = noun or self.platforms.noun_of(name), name
                decision = decide(rules, who, *target, now)
                pledges = (
                    decide(rules, who, "pledge", pledge, now).allowed for pledge in self.platforms.pledges_of(name)
                )
                if decision.allowed or not any(pledges):
                    return decision
                return decide(rules, who, *target, now, let_in=True)

            decisions = {name: judged(name) for name in (*self.platforms.by_name, *self.platforms.broken)}
            return {name: decision for name, decision in decisions.items() if not decision.allowed}

        return await self.store.read(work)

    async def bounds(self, person: Person, platform: str, request: Request) -> Bounds | Reason:
        """Return the limits for offers of a platform to this person, or the reason why there can be none."""
        target, pledges = (self.platforms.noun_of(platform), platform), tuple(self.platforms.pledges_of(platform))
        now = self.now()
        return await self.store.glance(
            lambda tx: _bounds(tx, who_is(tx, person.name, now), target, pledges, request, now)
        )

    def limit_asking(self, person: Person) -> None:
        """Raise TooMany if a person asks for offers too often, so that nobody fills the database with them."""
        try:
            self.throttle.spend("asks_per_person", person.name)
        except TooMany as error:
            seconds = error.values["seconds"]
            message = "You have asked for offers too often: wait {wait}."
            hint = "Accept an offer that you have, or ask for many tasks at once: sublet sweep, or a bag."
            raise TooMany(message, hint=hint, seconds=seconds) from error

    def limit_holds(self, person: Person) -> int | None:
        """Return how many requests may hold offers at once, so that nobody blocks others without accepting."""
        return self.settings.most_held

    async def note_answer(self, person: Person, asked: Asked, answer: OfferSet) -> None:
        """Record in the audit log that the rules left no offer, at a limited rate."""
        if not answer.offers and (why := await self._find_rule_against(person, answer)):
            place = (self.platforms.noun_of(why.platform), why.platform) if why.platform else ("", "")
            target = place if why.platform else next(iter(_app_of(asked.request)), place)
            with suppress(TooMany):
                self.throttle.spend("refusals_per_person", person.name)
                await self._write_refused("ask", person, target, why.message)

    async def _find_rule_against(self, person: Person, offerset: OfferSet) -> Reason | None:
        """Return the reason that stems from a rule, as a platform's own limits have the same kind."""
        for reason in offerset.reasons:
            if reason.kind == NOT_ALLOWED:
                return reason
            limit = reason.kind == TOO_MUCH and reason.platform
            if limit and isinstance(await self.bounds(person, reason.platform, offerset.request), Reason):
                return reason
        return None

    async def note_refusal(self, act: str, person: Person, error: SubletError, **about: str) -> None:
        """Record in the audit log that the rules refused something."""
        await self._write_refused(act, person, _about(error), error.message, **about)

    async def _write_refused(self, act: str, person: Person, target: AccessTarget, why: str, **more: str) -> None:
        entry = AuditEntry(self.now(), person.name, f"{act}.refused", *target, {**more, "why": why})
        await self.store.write(lambda tx: tx.audit.add(entry))

    def admit(self, tx: Tx, session: Session, now: datetime) -> None:
        """Check and count a session in the transaction that accepts it, so that concurrent ones can't exceed limits."""
        app = tx.uses.app_of(session.app) or session.app
        rules: dict[str, None] = {}
        who = who_is(tx, session.person, now)
        for claim in list_claims(self.platforms, session.offer, app):
            decision, use = _stands(tx, who, claim, now)
            wanted = portion(session.offer.amounts.total, claim.part)
            insist(refusal(decision) or next(excesses(decision, wanted, use), None), claim.target)
            rules |= dict.fromkeys(rule.id for rule in decision.rules)
        tx.uses.add(session, session.offer.amounts.total, app, now)
        detail = {"session": session.id, "rules": list(rules)} | ({"app": app} if app else {})
        target = self.platforms.noun_of(session.offer.platform), session.offer.platform
        tx.audit.add(AuditEntry(now, session.person, "accept", *target, detail))

    def admit_longer(self, tx: Tx, session: Session, offer: Offer, now: datetime) -> None:
        """Admit an extension to this offer's duration, by the same rules."""
        app = tx.uses.app_of(session.app) or session.app
        who = who_is(tx, session.person, now)
        for claim in list_claims(self.platforms, offer, app):
            decision, use = _stands(tx, who, claim, now)
            before = session.offer.amounts.total.hours * float(claim.part)
            apart = replace(decision, limits=replace(decision.limits, jobs=None))
            over = excesses(apart, portion(offer.amounts.total, claim.part), Use(0, max(use.hours - before, 0.0)))
            insist(refusal(decision) or next(over, None), claim.target)
        tx.uses.extend(session.id, offer.duration)

    def judge(self, tx: Tx, person: str, target: AccessTarget, now: datetime) -> tuple[Decision, Use]:
        """Return what the rules decide for a person and a target, and what the person uses of it this month."""
        return _stands(tx, who_is(tx, person, now), QuotaClaim(target), now)


Quotas = OpenAccess | RuledAccess


def list_claims(platforms: KnownPlatforms, offer: Offer, app: str) -> Iterator[QuotaClaim]:
    """List what an offer claims; a session under pledges only needs no rule that allows the platform."""
    let_in = bool(offer.pledge) and OPEN not in offer.pledge
    yield QuotaClaim((platforms.noun_of(offer.platform), offer.platform), let_in=let_in)
    if app:
        yield QuotaClaim(("app", app))
    yield from (QuotaClaim(("pledge", name), part) for name, part in shares(offer.pledge).items() if name != OPEN)


def _about(error: SubletError) -> AccessTarget:
    """Return the target of a refusal."""
    if isinstance(error, AppRefused):
        return "app", str(error.values.get("version", ""))
    return str(error.values.get("noun", "")), str(error.values.get("name", ""))


def _stands(tx: Tx, who: Who, claim: QuotaClaim, now: datetime) -> tuple[Decision, Use]:
    return decide_by_rules(tx, who, claim.target, now, let_in=claim.let_in), count_use(tx, who, claim.target, now)


def _find_refusal(tx: Tx, who: Who, target: AccessTarget, wanted: TotalAmounts | None, now: datetime) -> Reason | None:
    decision = decide_by_rules(tx, who, target, now)
    use = count_use(tx, who, target, now) if wanted else None
    return refusal(decision) or next(excesses(decision, wanted, use), None)


def _bounds(
    tx: Tx, who: Who, target: AccessTarget, pledges: Sequence[str], request: Request, now: datetime
) -> Bounds | Reason:
    """Return the limits of a platform and an app; open capacity has the platform's own limits."""
    place = _find_rest(tx, who, target, request, now)
    app = [_find_rest(tx, who, each, request, now) for each in _app_of(request)]
    if why := next((each for each in app if isinstance(each, Reason)), None):
        return why
    limits = lowest(each for each in app if isinstance(each, Limits))
    if not pledges:
        return place if isinstance(place, Reason) else Bounds(lowest([place, limits]))
    parts = {OPEN: place} | {name: _find_rest(tx, who, ("pledge", name), None, now) for name in pledges}
    caps = decide_by_rules(tx, who, target, now, let_in=True)
    if isinstance(place, Reason) and (not caps.allowed or all(isinstance(part, Reason) for part in parts.values())):
        return place
    return Bounds(
        lowest([caps.limits, limits]),
        {name: each for name, each in parts.items() if isinstance(each, Limits)},
        {name: each for name, each in parts.items() if isinstance(each, Reason)},
    )


def _find_rest(tx: Tx, who: Who, target: AccessTarget, request: Request | None, now: datetime) -> Limits | Reason:
    """Return a person's limits on a target with what is left this month, or the reason why nothing is left."""
    decision, use = decide_by_rules(tx, who, target, now), count_use(tx, who, target, now)
    least = request.least.total if request else None
    reason = refusal(decision) or next(excesses(decision, least, use), None)
    if reason:
        return reason
    month = decision.limits.hours_month
    left = Limits(hours=None if month is None else max(month - use.hours, 0.0))
    return lowest([decision.limits, left])


def _app_of(request: Request) -> list[AccessTarget]:
    executable = request.executable
    name = executable.fields.get("app") if executable and executable.kind == "app" else None
    return [("app", name)] if isinstance(name, str) and name else []
