"""Rules, quotas, groups and people, each use case built alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.access.quotas import OpenAccess
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Compute, Executable, Range, Request
from sublet.kernel.errors import (
    AlreadyThere,
    BadAddress,
    BadRequest,
    NotAGateway,
    NotAllowed,
    NotFound,
    OperatorsOnly,
    TooMany,
)
from sublet.people.model.person import Person
from tests.contract.alone import Ground, standing
from tests.contract.services import ME, OPERATOR, OTHER
from tests.contract.stored import a_session, a_set, an_offer

pytestmark = pytest.mark.anyio
ANNA = Person("anna@illinois.edu")


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    with standing(tmp_path, throttle={"asks_per_person": "3/10m"}) as made:
        yield made


async def test_rules_are_an_operators_and_say_what_was_overlooked(ground: Ground) -> None:
    with pytest.raises(OperatorsOnly):
        await ground.rules.rules(ANNA)
    assert (await ground.allow(noun="pledge", name="night")).notes == ("No pledge is called night at present.",)
    assert (await ground.allow("group:lab")).notes == ("There is no group lab yet.",)
    assert (await ground.allow(noun="account", name="keeling")).notes == ("No account is called keeling at present.",)
    rule = {"effect": "allow", "who": "*", "noun": "system", "name": "*"}
    with pytest.raises(BadRequest):
        await ground.rules.add_rule(OPERATOR, **rule, expires=ground.now() - timedelta(days=1))
    with pytest.raises(NotFound):
        await ground.rules.remove_rule("ffff", OPERATOR)


async def test_ones_own_service_has_no_rules_and_refuses_nothing(tmp_path: Path) -> None:
    with standing(tmp_path, has_owner=True) as own:
        quotas = OpenAccess(own.platforms)
        assert await quotas.find_refusal(ANNA, "system", "trial") is None
        rules = replace(own.rules, quotas=quotas)
        assert all(each.decision.allowed for each in await rules.standing(ME))
        with pytest.raises(NotAGateway):
            await own.allow()


async def test_who_joins_or_leaves_a_group_gains_or_loses_its_access_at_once(ground: Ground) -> None:
    await ground.groups.add_group(OPERATOR, "lab")
    assert not (await ground.allow("group:lab")).notes
    assert await ground.quotas.find_refusal(ANNA, "system", "trial")
    await ground.groups.join_group(OPERATOR, "lab", ANNA.name)
    assert await ground.quotas.find_refusal(ANNA, "system", "trial") is None
    await ground.groups.leave_group(OPERATOR, "lab", ANNA.name)
    assert await ground.quotas.find_refusal(ANNA, "system", "trial")
    for act in (ground.groups.add_group, ground.groups.group, ground.groups.remove_group):
        with pytest.raises(OperatorsOnly):
            await act(ANNA, "lab")


async def test_an_app_has_rules_of_its_own_beside_those_of_where_it_runs(ground: Ground) -> None:
    await ground.allow()
    assert await ground.quotas.find_refusal(ANNA, "system", "trial") is None
    refused = await ground.quotas.find_refusal(ANNA, "app", "summa")
    assert refused
    assert refused.nearest == "sublet access ask --app summa --reason TEXT"
    await ground.allow(noun="app", name="summa", cores=2)
    assert await ground.quotas.find_refusal(ANNA, "app", "summa") is None
    request = Request(Executable("app", fields={"app": "summa"}), Compute(cores=Range(4, 4)))
    reason = await ground.quotas.bounds(ANNA, "trial", request)
    assert isinstance(reason, Reason)
    assert reason.limit == "2 cores"


async def test_a_session_is_admitted_by_the_rules_of_its_transaction_and_counted_there(ground: Ground) -> None:
    session = replace(a_session(a_set(ANNA.name), an_offer(platform="trial")), person=ANNA.name)
    admit = ground.quotas.admit
    with pytest.raises(NotAllowed, match="no rule allows it"):
        await ground.store.write(lambda tx: admit(tx, session, ground.now()))
    await ground.allow(jobs=1)
    app = replace(session, app="a version that nobody knows")
    with pytest.raises(NotAllowed, match="the app a version that nobody knows"):
        await ground.store.write(lambda tx: admit(tx, app, ground.now()))
    await ground.store.write(lambda tx: admit(tx, session, ground.now()))
    with pytest.raises(NotAllowed, match="1 session under way"):
        await ground.store.write(lambda tx: admit(tx, replace(session, id="another"), ground.now()))


async def test_a_gateway_limits_how_often_someone_asks(ground: Ground) -> None:
    quotas = ground.quotas
    for _ in range(3):
        quotas.limit_asking(ME)
    with pytest.raises(TooMany, match="asked for offers too often") as refused:
        quotas.limit_asking(ME)
    assert 0 < refused.value.values["seconds"] <= 600
    quotas.limit_asking(OTHER)


async def test_people_groups_and_identities_are_the_same_by_either_address(ground: Ground) -> None:
    await ground.people.add_person(OPERATOR, "bob+x@example.org")
    for act in (
        ground.people.add_person(OPERATOR, "bob@example.org"),
        ground.people.add_identity(OPERATOR, "bob@example.org", "email", "bob+y@example.org"),
    ):
        with pytest.raises(AlreadyThere):
            await act
    with pytest.raises(BadAddress):
        await ground.people.add_person(OPERATOR, "*@example.org")
    await ground.groups.add_group(OPERATOR, "flood")
    group = await ground.groups.join_group(OPERATOR, "flood", "bob+z@example.org")
    assert group.members == ("bob@example.org",)
    assert await ground.names.find_name("bob+new@example.org") == "bob@example.org"


async def test_a_rule_for_a_tagged_address_is_for_the_person_and_patterns_stay(ground: Ground) -> None:
    assert (await ground.allow("Bob+x@example.org", name="trial")).rule.who == "bob@example.org"
    assert (await ground.allow("*@example.org", name="trial")).rule.who == "*@example.org"
