"""Budgets: what people, groups and projects may spend, enforced when sessions are offered, accepted and extended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import uuid4

from sublet.access.model.access import EVERYONE, GROUP, AccessTarget, Who
from sublet.access.model.access_words import excesses, insist, refusal
from sublet.access.model.budget import PROJECT, Budget, BudgetCharge, Measure, Period, budget_text, period_text
from sublet.access.model.budget_words import find_excess
from sublet.access.quotas import Quotas, who_is
from sublet.booking.model.offer import Answer, Offer, Reason
from sublet.booking.model.request import Request
from sublet.booking.model.session import Session
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import BadRequest, NotFound, SubletError
from sublet.kernel.settings import Settings
from sublet.kernel.short_ids import pick_one, require_length
from sublet.people.model.mailboxes import fold_address
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

LONGEST_NOTE = 2000


@dataclass(frozen=True, slots=True)
class BudgetState:
    """A budget, and what is spent or reserved of it in the current period."""

    budget: Budget
    spent: float | None  # None: each person has their own amount, and the budget isn't the viewer's
    since: datetime


@dataclass
class Budgets:
    """Manages budgets, and charges sessions to them."""

    settings: Settings
    store: Store
    now: Clock
    authority: Authority
    quotas: Quotas

    async def add(
        self,
        person: Person,
        *,
        holder: str,
        measure: Measure,
        amount: float,
        period: Period = "month",
        platform: str = EVERYONE,
        until: datetime | None = None,
        note: str = "",
        host: str = "",
    ) -> BudgetState:
        """Add a budget; it counts sessions accepted from now on."""
        self._require_keeper(person)
        now = self.now()
        if until and until <= now:
            raise BadRequest(detail=f"the budget would have ended on {until:%Y-%m-%d}", hint="Name a later day.")
        if len(note) > LONGEST_NOTE:
            raise BadRequest(detail=f"the note has more than {LONGEST_NOTE} characters")
        whose = self._plain(holder.strip())
        by = person.name
        budget = Budget(str(uuid4()), whose, measure, amount, period, now, platform.strip(), until, by, note)

        def work(tx: Tx) -> None:
            tx.budgets.add(budget)
            tx.audit.add(AuditEntry(now, by, "budget.add", "budget", budget.id, self._detail(budget), host))

        await self.store.write(work)
        return BudgetState(budget, 0.0, budget.begin(now))

    def _require_keeper(self, person: Person) -> None:
        if self.authority.has_owner:
            self.authority.require_owner(person)
        else:
            self.authority.require_operator(person)

    def _plain(self, holder: str) -> str:
        """Normalize a person's name: lower case, and an address without its tag."""
        if holder.startswith((GROUP, PROJECT)):
            return holder
        return fold_address(holder.lower() if holder.isascii() else holder, self.settings.signing.subaddresses)

    async def list(self, person: Person, of: str = "") -> Sequence[BudgetState]:
        """List all budgets for an operator, otherwise those that apply to the person;

        `of`: those that apply to someone else.
        """
        whose = self._plain(of) if of else person.name
        if whose != person.name:
            self._require_keeper(person)
        sees_all = not of and (self.authority.has_owner or person.operator)

        def work(tx: Tx) -> list[BudgetState]:
            now = self.now()
            who = who_is(tx, whose, now)
            return [
                self._state(tx, budget, who, now)
                for budget in tx.budgets.list()
                if sees_all or self._concerns(tx, budget, who, whose, now)
            ]

        return await self.store.read(work)

    def _concerns(self, tx: Tx, budget: Budget, who: Who, person: str, now: datetime) -> bool:
        """Whether a budget can apply to a person: their own, their groups', or of a project that they may charge."""
        if project := budget.project:
            return self.quotas.judge(tx, person, ("project", project), now)[0].allowed
        return budget.is_about(who, "", budget.platform, now)

    async def get(self, name: str, person: Person) -> BudgetState:
        """Return a budget by its id or the beginning of it."""
        listed = {state.budget.id: state for state in await self.list(person)}
        budget = await self.store.read(lambda tx: _find(tx, name))
        if budget.id not in listed:
            raise NotFound(noun="budget", name=name)
        return listed[budget.id]

    async def remove(self, name: str, person: Person, host: str = "") -> Budget:
        """Remove a budget, and forget what was charged to it."""
        self._require_keeper(person)

        def work(tx: Tx) -> Budget:
            budget = _find(tx, name)
            tx.budgets.remove(budget.id)
            entry = AuditEntry(
                self.now(), person.name, "budget.remove", "budget", budget.id, self._detail(budget), host
            )
            tx.audit.add(entry)
            return budget

        return await self.store.write(work)

    async def list_projects(self) -> frozenset[str]:
        """Return the projects that have a budget."""
        budgets = await self.store.read(lambda tx: tx.budgets.list())
        return frozenset(budget.project for budget in budgets if budget.project)

    def keep_affordable(
        self, tx: Tx, person: str, request: Request, platform: str, answer: Answer, now: datetime
    ) -> Answer:
        """Keep the offers of a platform that all budgets can pay for; if there are none, say why."""
        if not answer.offers or not tx.budgets.list():
            return answer
        who = who_is(tx, person, now)
        judged = [(offer, next(self._find_excesses(tx, who, person, offer, {}, now), None)) for offer in answer.offers]
        kept = tuple(offer for offer, reason in judged if reason is None)
        why_none = () if kept else tuple(dict.fromkeys(reason for _, reason in judged if reason))
        return Answer(kept, (*answer.reasons, *(replace(reason, platform=platform) for reason in why_none)))

    def admit(self, tx: Tx, session: Session, now: datetime) -> None:
        """Charge a session to all its budgets as it is accepted, or raise NotAllowed."""
        self.admit_longer(tx, session, session.offer, now)

    def admit_longer(self, tx: Tx, session: Session, offer: Offer, now: datetime) -> None:
        """Charge a session for this offer's duration, instead of what it was charged before, or raise NotAllowed."""
        if not tx.budgets.list():
            return
        who, before = who_is(tx, session.person, now), tx.budgets.charges_of(session.id)
        insist(next(self._find_excesses(tx, who, session.person, offer, before, now), None), _target(offer))
        for budget in _list_about(tx, who, offer, now):
            charge = BudgetCharge(session.id, budget.id, session.person, budget.charge_of(offer) or 0.0)
            tx.budgets.charge(charge, offer.duration)

    async def note_refusal(self, act: str, person: Person, error: SubletError, **about: str) -> None:
        """Do nothing: the access rules record refusals."""

    def _find_excesses(
        self, tx: Tx, who: Who, person: str, offer: Offer, before: dict[str, float], now: datetime
    ) -> Iterator[Reason]:
        """Yield the reasons why an offer can't be charged; `before` is what its session is charged already."""
        yield from self._find_refusals(tx, person, offer, now)
        for budget in _list_about(tx, who, offer, now):
            spent = sum(tx.budgets.sum_spent(budget, name, now) for name in _payers(budget, who, person))
            rest = max(spent - before.get(budget.id, 0.0), 0.0)
            charge, currency = self._find_charge(budget, offer), self.settings.prices.currency
            if reason := find_excess(budget, charge, rest, offer.platform, currency):
                yield reason

    def _find_charge(self, budget: Budget, offer: Offer) -> float | None:
        """Return what an offer costs a budget; None if that isn't known, such as for a price in another currency."""
        prices, charge = self.settings.prices, budget.charge_of(offer)
        is_foreign = prices.at(offer.platform, offer.pledge).currency != prices.currency
        return None if budget.measure == "money" and is_foreign and charge else charge

    def _find_refusals(self, tx: Tx, person: str, offer: Offer, now: datetime) -> Iterator[Reason]:
        """Yield the reasons why a person may not charge the offer's project, if that has a budget."""
        project = offer.scheduler.project
        if project and any(budget.project == project for budget in tx.budgets.list()):
            decision, use = self.quotas.judge(tx, person, ("project", project), now)
            if reason := refusal(decision):
                yield reason
            yield from excesses(decision, offer.amounts.total, use)

    def _state(self, tx: Tx, budget: Budget, who: Who, now: datetime) -> BudgetState:
        is_theirs = budget.is_shared or budget.is_about(who, "", budget.platform, now)
        names = _payers(budget, who, who.people[0])
        spent = sum(tx.budgets.sum_spent(budget, name, now) for name in names) if is_theirs else None
        return BudgetState(budget, spent, budget.begin(now))

    def _detail(self, budget: Budget) -> dict[str, str]:
        limit = budget_text(budget.amount, budget.measure, self.settings.prices.currency)
        detail = {"who": budget.holder, "limit": f"{limit} {period_text(budget.period)}", "note": budget.note}
        return {key: value for key, value in detail.items() if value}


def _list_about(tx: Tx, who: Who, offer: Offer, now: datetime) -> list[Budget]:
    project = offer.scheduler.project
    return [budget for budget in tx.budgets.list() if budget.is_about(who, project, offer.platform, now)]


def _payers(budget: Budget, who: Who, person: str) -> Sequence[str]:
    """Return whose charges count: all names of one person, or any name if the budget is shared."""
    return (person,) if budget.is_shared else who.people


def _target(offer: Offer) -> AccessTarget:
    return "system", offer.platform


def _find(tx: Tx, name: str) -> Budget:
    matches = tx.budgets.find(name)
    require_length(name, "budget")
    budget = pick_one(name, "budget", matches, lambda budget: f"{budget.id[:13]} ({budget.holder})")
    if budget is None:
        raise NotFound(noun="budget", name=name, hint="`sublet budget list` lists them.")
    return budget
