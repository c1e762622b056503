"""Quotas: what the access rules leave of a wish, asked before an offer is made and again while it is accepted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from sublet.core.access import (
    NO_LIMITS,
    Amounts,
    Decision,
    Limits,
    Use,
    Who,
    amounts_of,
    decide,
    least_of,
    lowest,
    month_of,
)
from sublet.core.access_words import excesses, refusal
from sublet.core.offer import Offer, Reason
from sublet.core.request import Request
from sublet.core.session import Session
from sublet.errors import NotAllowed
from sublet.service.desk import Person
from sublet.service.people import names_in
from sublet.service.platforms import Thing as Thing  # also for those who decide on one
from sublet.service.platforms import insist
from sublet.service.sessions import Sessions
from sublet.store.audit import Entry
from sublet.store.tx import Tx


def decided(tx: Tx, person: str, thing: Thing, now: datetime) -> Decision:
    """Whether a person may use something, by the rules as they are in this transaction."""
    return decide(tx.rules.list(thing[0]), who_is(tx, person), *thing, now)


def who_is(tx: Tx, person: str) -> Who:
    """A person as the rules know them."""
    return Who(names_in(tx, person), frozenset(tx.groups.of(person)))


def used(tx: Tx, person: str, thing: Thing, now: datetime) -> Use:
    """What they have of it already, this month."""
    return tx.uses.of(person, *thing, month_of(now))


class Quotas(Sessions):
    """Who may use what and how much, held on the server at every door."""

    async def refused(self, person: Person, noun: str, name: str, wanted: Amounts | None = None) -> Reason | None:
        """Why a person may not use this, or not so much of it, now; None if they may."""
        if self.settings.mode == "personal":
            return None
        return await self.store.read(lambda tx: _refused(tx, person.name, (noun, name), wanted, self.now()))

    async def closed(self, person: Person) -> Mapping[str, Decision]:
        """The platforms that a person may not use, and why; operators look at all of them."""
        if self.settings.mode == "personal" or person.operator:
            return {}

        def work(tx: Tx) -> dict[str, Decision]:
            rules, who, now = tx.rules.list(), who_is(tx, person.name), self.now()
            names = (*self.platforms_by_name, *self.broken)
            found = {name: decide(rules, who, self.noun_of(name), name, now) for name in names}
            return {name: decision for name, decision in found.items() if not decision.allowed}

        return await self.store.read(work)

    async def bounds(self, person: Person, platform: str, request: Request) -> Limits | Reason:
        """The most that an offer of a platform may have for this person; or why there can be none."""
        if self.settings.mode == "personal":
            return NO_LIMITS
        things = [(self.noun_of(platform), platform), *_app_of(request)]
        return await self.store.read(lambda tx: _bounds(tx, person.name, things, request, self.now()))

    async def accept(self, name: str, person: Person) -> Session:
        """Take an offer, if the rules still let its asker; what they refuse is written down."""
        try:
            return await super().accept(name, person)
        except NotAllowed as error:
            noun, about = (str(error.values.get(field, "")) for field in ("noun", "name"))
            detail = {"offer": name, "why": error.message}
            refused = Entry(self.now(), person.name, "accept.refused", noun, about, detail)
            await self.store.write(lambda tx: tx.audit.add(refused))
            raise

    def admit(self, tx: Tx, session: Session, now: datetime) -> None:
        """Let a session be accepted: checked and counted in the transaction that accepts it, so that no two exceed."""
        if self.settings.mode == "personal":
            return
        wanted, app = amounts_of(session.offer), tx.uses.app_of(session.app) or session.app
        for thing in self._things(session, app):
            insist(_refused(tx, session.person, thing, wanted, now), thing)
        tx.uses.add(session, wanted, app, now)

    def admit_longer(self, tx: Tx, session: Session, offer: Offer, now: datetime) -> None:
        """Let a session last as long as this offer says, by the same rules."""
        if self.settings.mode == "personal":
            return
        wanted, app = amounts_of(offer), tx.uses.app_of(session.app) or session.app
        for thing in self._things(session, app):
            decision, use = decided(tx, session.person, thing, now), used(tx, session.person, thing, now)
            others = Use(0, max(use.hours - amounts_of(session.offer).hours, 0.0))
            apart = replace(decision, limits=replace(decision.limits, jobs=None))
            insist(refusal(decision) or next(excesses(apart, wanted, others), None), thing)
        tx.uses.extend(session.id, offer.duration)

    def _things(self, session: Session, app: str) -> Iterator[Thing]:
        yield self.noun_of(session.offer.platform), session.offer.platform
        if app:
            yield "app", app


def _refused(tx: Tx, person: str, thing: Thing, wanted: Amounts | None, now: datetime) -> Reason | None:
    decision = decided(tx, person, thing, now)
    use = used(tx, person, thing, now) if wanted else None
    return refusal(decision) or next(excesses(decision, wanted, use), None)


def _bounds(tx: Tx, person: str, things: Sequence[Thing], request: Request, now: datetime) -> Limits | Reason:
    limits: list[Limits] = []
    for thing in things:
        decision, use = decided(tx, person, thing, now), used(tx, person, thing, now)
        reason = refusal(decision) or next(excesses(decision, least_of(request), use), None)
        if reason:
            return reason
        month = decision.limits.hours_month
        left = Limits(hours=None if month is None else max(month - use.hours, 0.0))
        limits += [decision.limits, left]
    return lowest(limits)


def _app_of(request: Request) -> list[Thing]:
    executable = request.executable
    name = executable.fields.get("app") if executable and executable.kind == "app" else None
    return [("app", name)] if isinstance(name, str) and name else []
