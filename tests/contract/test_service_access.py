"""Access on a gateway: nobody gets anywhere without a rule, limits hold at every door, and changes count at once."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.access.audit import Sought
from sublet.app import open_service
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import OfferSet
from sublet.booking.model.shape import TotalAmounts
from sublet.kernel.errors import (
    AlreadyAllowed,
    AlreadyDecided,
    BadRequest,
    NotAllowed,
    NotFound,
    OperatorsOnly,
    TooMany,
)
from sublet.kernel.settings import Settings
from sublet.kernel.settings_operation import ThrottleSettings
from sublet.people.model.person import Person
from sublet.service import Service
from tests.contract.services import KEEP, ME, OPERATOR, allow, ask, in_phase, reach, serving

pytestmark = pytest.mark.anyio
ANNA = Person("anna@illinois.edu")
EVE = Person("eve@illinois.edu.evil.org")
IMAGE: dict[str, Any] = {"run": None, "image": "docker://busybox"}
TRIAL = {"trial": {"kind": "memory", "nodes": 4, "cores": 8, "takes": "1h"}}


async def wish(service: Service, person: Person = ANNA, **short: Any) -> OfferSet:
    return await ask(service, person, **IMAGE, **short)


async def test_a_person_outside_the_pattern_gets_nowhere_and_learns_how_to_ask(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=TRIAL) as service:
        for person in (ANNA, EVE, OPERATOR):
            refused = await wish(service, person)
            [reason] = refused.reasons
            assert (refused.result, reason.kind, reason.platform) == ("NO", "urn:not-allowed", "trial")
            assert reason.nearest == "sublet access ask trial --reason TEXT"
        await allow(service, "*@illinois.edu")
        assert (await wish(service, ANNA)).result == "YES"
        data = "http://192.0.2.1/never-asked"
        outside = await wish(service, EVE, data=[data])
        assert [reason.kind for reason in outside.reasons] == ["urn:not-allowed"], "nothing is looked up for strangers"
        offer = (await wish(service, ANNA)).offers[0]
        with pytest.raises(Exception, match="belongs to someone else"):
            await service.sessions.accept(offer.id, EVE)


async def test_limits_are_held_when_offers_are_made(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=TRIAL, loop=False) as service:
        await allow(service, cores=4, time=timedelta(hours=2), hours_month=6.0)
        found = await wish(service, cores="1-8", time="1h")
        assert {offer.offer.shape.cores for offer in found.offers} <= {1, 2, 3, 4}
        assert max(offer.offer.shape.cores for offer in found.offers) == 4
        [reason] = (await wish(service, cores=8, time="1h")).reasons
        assert (reason.kind, reason.limit, reason.field) == ("urn:resource-limit", "4 cores", "compute.cores.min")
        [reason] = (await wish(service, time="3h")).reasons
        assert (reason.field, reason.limit) == ("duration", "2 h")
        [reason] = (await wish(service, cores=4, time="2h")).reasons
        assert "6 core-hours a month" in reason.message
        nodes = await wish(service, nodes=2, cores=4, time="30m")
        assert nodes.result == "NO", "cores are counted over all nodes"
        assert len(await service.access.audit.audit(OPERATOR, Sought(action="ask.refused"))) == 4
        assert (await wish(service, data=["no address"])).result == "NO"
        assert len(await service.access.audit.audit(OPERATOR, Sought(action="ask."))) == 4, "a mistake is no decision"
        assert (
            await service.access.quotas.find_refusal(
                ANNA, "system", "trial", TotalAmounts(cores=4, time=timedelta(hours=1))
            )
            is None
        )
        assert await service.access.quotas.find_refusal(
            ANNA, "system", "trial", TotalAmounts(cores=5, time=timedelta(hours=1))
        )


async def test_access_that_is_withdrawn_counts_at_once_and_in_all_processes(tmp_path: Path) -> None:
    async with (
        serving(tmp_path, mode="gateway", platforms=TRIAL) as one,
        serving(tmp_path, mode="gateway", platforms=TRIAL, loop=False) as other,
    ):
        rule = (await allow(one)).rule
        running = await one.sessions.accept((await wish(one)).offers[0].id, ANNA)
        await reach(one, running.id, in_phase(Phase.RUNNING, Phase.AVAILABLE), ANNA)
        offer = (await wish(one)).offers[0]
        told = await other.access.rules.remove_rule(rule.id[:8], OPERATOR)
        assert [session.id for session in told.running] == [running.id]
        with pytest.raises(NotAllowed, match="no rule allows it"):
            await one.sessions.accept(offer.id, ANNA)
        assert (await wish(one)).result == "NO"
        with pytest.raises(NotAllowed):
            await one.sessions.extend(running.id, ANNA, by="10m")
        assert (await one.sessions.get(running.id, ANNA)).phase in (Phase.RUNNING, Phase.AVAILABLE)
        entries = await one.access.audit.audit(OPERATOR, Sought())
        kinds = ["rule.add", "accept", "rule.remove", "accept.refused", "ask.refused", "extend.refused"]
        assert [entry.action for entry in entries] == kinds
        assert entries[1].detail == {"session": running.id, "rules": [rule.id]}
        assert entries[2].detail["running"] == [running.id]
        assert {(entry.person, entry.noun, entry.name) for entry in entries[3:]} == {(ANNA.name, "system", "trial")}
        most = ThrottleSettings().refusals_per_person.most
        for _ in range(2 * most):
            await wish(one)
        refused = len(await one.access.audit.audit(OPERATOR, Sought(action="ask.")))
        assert most <= refused < 2 * most, "nobody fills the log"
        denied = await allow(one)
        deny = await allow(one, "anna@illinois.edu", effect="deny", note="left in May")
        assert [session.id for session in deny.running] == [running.id]
        [reason] = (await wish(one)).reasons
        assert reason.message.endswith("denies it (left in May).")
        assert not denied.running


async def test_jobs_at_once_and_hours_of_the_month_count_what_runs_and_what_ended(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=TRIAL) as service:
        await allow(service, jobs=2, hours_month=4.0)
        first = await service.sessions.accept((await wish(service, cores=1, time="1h")).offers[0].id, ANNA)
        spare = (await wish(service, cores=1, time="1h")).offers[0]
        await service.sessions.accept((await wish(service, cores=1, time="1h")).offers[0].id, ANNA)
        with pytest.raises(NotAllowed, match="2 sessions under way"):
            await service.sessions.accept(spare.id, ANNA)
        assert (await wish(service, cores=1, time="1h")).result == "NO"
        assert (await wish(service, ME, cores=1, time="1h")).result == "YES", "each person has their own"
        await service.sessions.cancel(first.id, ANNA)
        await service.sessions.delete(first.id, ANNA)
        [standing] = await service.access.rules.standing(ANNA)
        assert standing.use.jobs == 1
        assert 1.0 <= standing.use.hours < 1.1, "an hour is reserved; what was cancelled counts for what it used"
        with pytest.raises(NotAllowed, match="4 core-hours a month"):
            await service.sessions.extend((await service.sessions.page(ANNA, active=True)).items[0].id, ANNA, by="4h")
        assert (await service.access.rules.standing(OPERATOR, ANNA.name))[0].use == standing.use
        with pytest.raises(OperatorsOnly):
            await service.access.rules.standing(ANNA, EVE.name)


@pytest.mark.parametrize(
    ("noun", "limits", "most"),
    [("system", {"jobs": 3}, 3), ("system", {"hours_month": 5.0}, 5), ("pledge", {"hours_month": 4.0}, 4)],
)
async def test_accepts_at_the_same_time_never_exceed_a_limit(
    store_url: str, tmp_path: Path, noun: str, limits: dict[str, Any], most: int
) -> None:
    platforms = {"trial": {**TRIAL["trial"], "pledges": {"srcnet": {"cores": 16}}}} if noun == "pledge" else TRIAL
    settings = [
        Settings.load(tmp_path / name, mode="gateway", platforms=platforms, database=store_url)
        for name in ("one", "two")
    ]
    async with open_service(settings[0], loop=False) as one, open_service(settings[1], loop=False) as two:
        await allow(one, noun=noun, **limits)
        offers = [(await wish(one, cores=1, time="1h")).offers[0] for _ in range(12)]

        async def take(number: int) -> bool:
            try:
                await (one, two)[number % 2].sessions.accept(offers[number].id, ANNA)
            except NotAllowed:
                return False
            return True

        took = await asyncio.gather(*map(take, range(len(offers))))
        assert sum(took) == most
        [standing] = [one for one in await two.access.rules.standing(ANNA) if one.decision.noun == noun]
        assert (standing.use.jobs, standing.use.hours) == (most, float(most))
        refused = await two.access.audit.audit(OPERATOR, Sought(action="accept."))
        assert len(refused) == len(offers) - most


async def test_nobody_keeps_others_out_by_offers_that_they_never_take(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=TRIAL, loop=False, most_held=3) as service:
        await allow(service)
        held = [await wish(service, cores=1) for _ in range(3)]
        with pytest.raises(TooMany, match="held for 3 of your requests"):
            await wish(service, precedence=KEEP, cores=1)
        assert (await ask(service, Person("other@illinois.edu"), **IMAGE)).offers
        await service.sessions.accept(held[0].offers[0].id, ANNA)
        await wish(service, cores=1)
        with pytest.raises(TooMany):
            await wish(service, precedence=KEEP, cores=1)
        await wish(service, cores=1)
        assert {one.id for one in await service.offers.open_offers(ANNA)}.isdisjoint({held[0].id, held[1].id})
        assert len(await service.offers.open_offers(ANNA)) == 3, "the oldest gave way"


async def test_someone_asks_to_be_let_in_and_an_operator_decides(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=TRIAL, loop=False) as service:
        asked = await service.access.requests.ask_access(ANNA, "", "trial", "for the flood model")
        assert asked.notes, "there is no mail server"
        again = await service.access.requests.ask_access(ANNA, "system", "trial", "please")
        assert again.request.id == asked.request.id
        with pytest.raises(NotFound):
            await service.access.requests.ask_access(ANNA, "", "nothing", "why not")
        with pytest.raises(BadRequest):
            await service.access.requests.ask_access(ANNA, "", "trial", " ")
        with pytest.raises(OperatorsOnly):
            await service.access.requests.grant_access(asked.request.id, ANNA)
        with pytest.raises(NotFound):
            await service.access.requests.access_request(asked.request.id, EVE)
        assert not await service.access.requests.access_requests(EVE)
        [one] = await service.access.requests.access_requests(OPERATOR, "open")
        until = datetime.now(UTC) + timedelta(days=30)
        granted = await service.access.requests.grant_access(one.id[:8], OPERATOR, expires=until, answer="welcome")
        assert (granted.request.state, granted.request.by) == ("granted", OPERATOR.name)
        assert (await wish(service)).result == "YES"
        assert (await wish(service, EVE)).result == "NO"
        with pytest.raises(AlreadyDecided):
            await service.access.requests.refuse_access(one.id, OPERATOR)
        with pytest.raises(AlreadyAllowed):
            await service.access.requests.ask_access(ANNA, "", "trial", "more")
        [rule] = await service.access.rules.rules(OPERATOR)
        assert (rule.who, rule.name, rule.expires) == (ANNA.name, "trial", until)
        theirs = await service.access.requests.ask_access(EVE, "", "trial", "curious")
        await service.access.requests.refuse_access(theirs.request.id, OPERATOR, "sorry")
        assert [entry.action for entry in await service.access.audit.audit(OPERATOR, Sought(action="access."))] == [
            "access.ask",
            "access.grant",
            "access.ask",
            "access.refuse",
        ]
        assert {entry.person for entry in await service.access.audit.audit(ANNA, Sought())} == {ANNA.name}
        with pytest.raises(OperatorsOnly):
            await service.access.audit.audit(ANNA, Sought(person=EVE.name))


async def test_rules_know_a_person_by_each_address_that_was_confirmed(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "rules": [{"field": "compute.cores.max", "cap": 2, "person": "*@students.illinois.edu"}],
    }
    async with serving(tmp_path, mode="gateway", platforms=TRIAL, loop=False, **settings) as service:
        home = Person("anna@home.org")
        await service.people.directory.add_person(OPERATOR, home.name)
        await service.people.directory.add_identity(OPERATOR, home.name, "system:keeling", "eve@illinois.edu")
        await allow(service, "*@illinois.edu")
        assert (await wish(service, home)).result == "NO", "a name on a system is no address"
        await service.people.groups.add_group(OPERATOR, "lab")
        await service.people.groups.join_group(OPERATOR, "lab", ANNA.name)
        await service.people.directory.add_identity(OPERATOR, home.name, "email", ANNA.name)
        offer = (await wish(service, home)).offers[0]
        assert (await service.people.groups.group(OPERATOR, "lab")).members == (home.name,), (
            "a membership is whose address it was"
        )
        [standing] = await service.access.rules.standing(OPERATOR, ANNA.name)
        assert (standing.decision.allowed, standing.decision.rules[0].who) == (True, "*@illinois.edu")
        deny = await allow(service, "anna@home.org", effect="deny")
        assert (await wish(service, home)).result == "NO"
        await service.access.rules.remove_rule(deny.rule.id, OPERATOR)
        await allow(service, ANNA.name, effect="deny", cores=4)
        assert {one.offer.shape.cores for one in (await wish(service, home, cores="1-8")).offers} <= {1, 2, 3, 4}
        await service.people.directory.add_identity(OPERATOR, home.name, "email", "anna@students.illinois.edu")
        assert max(one.offer.shape.cores for one in (await wish(service, home, cores="1-8")).offers) == 2
        await service.people.directory.remove_identity(OPERATOR, home.name, "email", ANNA.name)
        with pytest.raises(NotAllowed):
            await service.sessions.accept(offer.id, home)
