"""Budgets of a service: kept to when something is offered, accepted and extended, by any number at once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.access.audit import Sought
from sublet.access.model.budget import BudgetCharge
from sublet.access.store.budgets import END_CHARGE
from sublet.booking.model.session import OfferSet
from sublet.booking.model.timeline import micros
from sublet.kernel.clock import utc_now
from sublet.kernel.errors import NotAllowed, NotFound, OperatorsOnly
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.store.tx import Tx
from tests.contract.services import FIRM, KEEP, ME, OPERATOR, allow, ask, over, serving

pytestmark = pytest.mark.anyio
ANNA, BOB = Person("anna@x.org"), Person("bob@x.org")
PRICES = {"core_hour": 1.0, "currency": "EUR", "core_hour_energy": 0.5}
TRIAL = {"trial": {"kind": "memory", "nodes": 8, "cores": 8, "takes": "1h"}}
GATEWAY: dict[str, Any] = {"mode": "gateway", "platforms": TRIAL, "prices": PRICES, "loop": False}


async def wish(service: Service, person: Person = ANNA, **short: Any) -> OfferSet:
    return await ask(service, person, KEEP, run=None, image="docker://busybox", cores=2, time="1h", **short)


async def accept(service: Service, person: Person = ANNA, **short: Any) -> Any:
    return await service.sessions.accept((await wish(service, person, **short)).offers[0].id, person)


async def bound(service: Service, holder: str, amount: float, measure: Any = "money", **more: Any) -> str:
    state = await service.access.budgets.add(OPERATOR, holder=holder, amount=amount, measure=measure, **more)
    return state.budget.id


async def test_nobody_accepts_or_extends_beyond_a_budget_of_their_own(tmp_path: Path) -> None:
    async with serving(tmp_path, **GATEWAY) as service:
        await allow(service)
        await bound(service, "*@x.org", 5)
        late = (await wish(service)).offers[0]
        running = await accept(service)
        await accept(service)
        with pytest.raises(NotAllowed, match="Your budget is 5 EUR a month; 1 EUR is left, and this needs 2 EUR"):
            await service.sessions.accept(late.id, ANNA)
        [reason] = (await wish(service)).reasons
        assert (reason.kind, reason.platform, reason.limit) == ("urn:over-budget", "trial", "1 EUR")
        assert (await service.sessions.extend(running.id, ANNA, by="30m")).offer.costs[0].max == 3
        with pytest.raises(NotAllowed, match="3 EUR are left, and this needs 4 EUR"):
            await service.sessions.extend(running.id, ANNA, by="30m")
        assert (await wish(service, BOB)).offers, "each person has it to themselves"
        [state] = await service.access.budgets.list(ANNA)
        assert state.spent == 5


async def test_a_group_and_a_project_are_charged_by_all_together(tmp_path: Path) -> None:
    async with serving(tmp_path, **GATEWAY) as service:
        await allow(service)
        await service.people.groups.add_group(OPERATOR, "lab")
        for person in (ANNA, BOB):
            await service.people.groups.join_group(OPERATOR, "lab", person.name)
        await bound(service, "group:lab", 5, "core-hours")
        await bound(service, "project:flood", 2, "energy", period="total")
        refused = await wish(service, project="flood")
        assert [reason.kind for reason in refused.reasons] == ["urn:not-allowed"]
        assert refused.reasons[0].nearest == "sublet access ask --project flood --reason TEXT"
        await allow(service, "group:lab", noun="project", name="flood")
        first = await accept(service, ANNA, project="flood")
        await accept(service, BOB, project="flood")
        for by, why in (
            ("1h", "The group lab's budget is 5 core-hours"),
            ("15m", "The project flood's budget is 2 kWh"),
        ):
            with pytest.raises(NotAllowed, match=why):
                await service.sessions.extend(first.id, ANNA, by=by)
        assert (await wish(service, ANNA, project="flood")).reasons[0].message == (
            "The group lab's budget is 5 core-hours a month; 1 core-hour is left, and this needs 2 core-hours."
        )
        stranger = Person("eve@y.org")
        assert (await wish(service, stranger)).offers
        assert not (await wish(service, stranger, project="flood")).offers
        assert not await service.access.budgets.list(stranger)
        assert {state.spent for state in await service.access.budgets.list(ANNA)} == {4.0, 2.0}


async def test_what_has_ended_counts_for_what_it_used_deleted_or_not(tmp_path: Path) -> None:
    platforms = {"trial": {"kind": "memory", "nodes": 8, "cores": 8, "takes": "0s"}}
    async with serving(tmp_path, **GATEWAY | {"platforms": platforms, "loop": True}) as service:
        await allow(service)
        await bound(service, "anna@x.org", 3)
        first = await accept(service)
        await over(service, first.id, ANNA)
        await service.sessions.delete(first.id, ANNA)
        [state] = await service.access.budgets.list(ANNA)
        assert 0 <= (state.spent or 0) < 0.5
        assert await accept(service), "what was not used can be spent again"


async def test_of_many_who_accept_at_once_no_more_get_it_than_the_budget_has(tmp_path: Path) -> None:
    async with serving(tmp_path, **GATEWAY) as service:
        await allow(service)
        await bound(service, "*", 7)
        offers = [(await wish(service)).offers[0] for _ in range(6)]
        taken = await asyncio.gather(
            *(service.sessions.accept(offer.id, ANNA) for offer in offers), return_exceptions=True
        )
        refused = [error for error in taken if isinstance(error, NotAllowed)]
        assert (len(taken) - len(refused), len(refused)) == (3, 3)


async def test_energy_that_is_not_stated_is_refused_where_a_budget_bounds_it(tmp_path: Path) -> None:
    async with serving(tmp_path, **GATEWAY | {"prices": {"core_hour": 1.0}}) as service:
        await allow(service)
        id = await bound(service, "*", 7, "energy")
        assert "doesn't state its energy" in (await wish(service)).reasons[0].message
        await service.access.budgets.remove(id[:8], OPERATOR)
        assert (await wish(service)).offers


async def test_a_price_in_another_currency_is_charged_to_no_budget(tmp_path: Path) -> None:
    prices = PRICES | {"platforms": {"trial": {"currency": "CHF"}}}
    async with serving(tmp_path, **GATEWAY | {"prices": prices}) as service:
        await allow(service)
        await bound(service, "*", 100)
        assert "trial doesn't state its price in EUR" in (await wish(service)).reasons[0].message


async def test_budgets_are_an_operators_and_a_new_month_begins_anew(tmp_path: Path) -> None:
    async with serving(tmp_path, **GATEWAY) as service:
        with pytest.raises(OperatorsOnly):
            await service.access.budgets.add(ANNA, holder="*", measure="money", amount=1)
        with pytest.raises(OperatorsOnly):
            await service.access.budgets.list(ANNA, "bob@x.org")
        id = await bound(service, "bob@x.org", 1)
        with pytest.raises(NotFound):
            await service.access.budgets.get(id, ANNA)
        assert (await service.access.budgets.get(id[:8], OPERATOR)).spent is None
        [audited] = await service.access.audit.audit(OPERATOR, Sought(action="budget.add"))
        assert audited.detail == {"who": "bob@x.org", "limit": "1 EUR a month"}


async def test_ones_own_service_keeps_to_a_budget_too(tmp_path: Path) -> None:
    async with serving(tmp_path, prices=PRICES, loop=False) as service:
        await service.access.budgets.add(ME, holder="*", measure="money", amount=1)
        assert (await ask(service, ME, FIRM, cores=1, time="1h")).offers
        assert not (await ask(service, ME, FIRM, cores=1, time="2h")).offers
        with pytest.raises(OperatorsOnly):
            await service.access.budgets.add(Person("guest", guest=True), holder="*", measure="money", amount=100)


async def test_half_of_the_time_is_half_of_the_price_and_a_new_month_has_a_whole_budget(tmp_path: Path) -> None:
    async with serving(tmp_path, **GATEWAY) as service:
        id = await bound(service, "anna@x.org", 2)
        [budget] = [state.budget for state in await service.access.budgets.list(ANNA)]
        hour, now = timedelta(hours=1), service.now()
        ended = {"of_session": "s", "new_started": micros(now - hour / 2), "new_ended": micros(now)}

        def work(tx: Tx) -> list[float]:
            tx.budgets.charge(BudgetCharge("s", id, ANNA.name, 2.0), hour)
            before = tx.budgets.sum_spent(budget, ANNA.name, now)
            tx.sessions._sql.change(END_CHARGE, ended)
            moments = (now, now + 40 * 24 * hour)
            return [before, *(tx.budgets.sum_spent(budget, ANNA.name, moment) for moment in moments)]

        assert await service.store.write(work) == [2.0, 1.0, 0.0]


async def test_what_was_handed_over_is_extended_within_the_budget_of_whoever_took_it(tmp_path: Path) -> None:
    async with serving(tmp_path, **GATEWAY) as service:
        await allow(service)
        await bound(service, ANNA.name, 100)
        await bound(service, BOB.name, 3)
        given = await accept(service, start="tomorrow 09:00 UTC")
        await service.handovers.give(given.id, ANNA, BOB.name)
        taken = await service.handovers.take(given.id, BOB)
        [annas], [bobs] = await service.access.budgets.list(ANNA), await service.access.budgets.list(BOB)
        assert (annas.spent, bobs.spent) == (0, 2)
        longer = replace(taken.offer, duration=timedelta(hours=2), costs=(replace(taken.offer.costs[0], max=4, min=4),))

        def extend(tx: Any) -> None:
            for admission in service.sessions.admissions:
                admission.admit_longer(tx, taken, longer, utc_now())

        with pytest.raises(NotAllowed, match="3 EUR are left, and this needs 4 EUR"):
            await service.store.write(extend)
