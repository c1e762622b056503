"""A session changes hands: if both want it, the rules let the taker, and it needs nothing of its owner alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.offer import Remote
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Session
from sublet.booking.transfer import check_transferable
from sublet.kernel.errors import BadRequest, NotAGateway, NotAllowed, NotFound, NotHandable, NotYours, SubletError
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.store import Store
from tests.contract.services import ME, allow, ask, serving
from tests.contract.stored import NOON, define
from tests.contract.test_store_archive import end_one

pytestmark = pytest.mark.anyio
ANN, BOB, EVE = (Person(name) for name in ("ann@example.org", "bob@example.org", "eve@example.net"))
TRIAL = {"trial": {"kind": "memory", "nodes": 2, "cores": 4, "takes": "1h"}}
WISH: dict[str, Any] = {"run": None, "image": "docker://busybox", "time": "1h", "start": "tomorrow 09:00 UTC"}


async def accepted(service: Service, person: Person = ANN, **more: Any) -> Session:
    offers = (await ask(service, person, **WISH | more)).offers
    return await service.sessions.accept(offers[0].id, person)


async def used(service: Service, person: Person) -> int:
    use = await service.store.read(lambda tx: tx.uses.of(person.name, "system", "trial", NOON.replace(year=2000)))
    return use.jobs


async def test_a_session_is_the_takers_with_its_quota_once_they_take_it(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=TRIAL, loop=False) as service:
        await allow(service, "*@example.org")
        session = await accepted(service)
        await service.handovers.give(session.id[:8], ANN, "bob@example.org")
        assert (await service.sessions.get(session.id, ANN)).person == ANN.name, "nothing changes until it is taken"
        taken = await service.handovers.take(session.id[:8], BOB)
        assert (taken.person, taken.phase, taken.start) == (BOB.name, Phase.ACCEPTED, session.start)
        assert (await used(service, ANN), await used(service, BOB)) == (0, 1)
        with pytest.raises(NotYours):
            await service.sessions.get(session.id, ANN)
        assert (await service.sessions.offerset_of(taken)).person == BOB.name
        assert await service.handovers.list_own(ANN) == []
        kinds = [event.kind.value for event in await service.store.read(lambda tx: tx.events.after(session=session.id))]
        assert kinds.count("session.handed-over") == 2
        assert (await service.sessions.cancel_all([session.id], BOB)).cancelled


async def test_whom_the_rules_do_not_let_takes_nothing_and_it_stays_as_it_was(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=TRIAL, loop=False) as service:
        await allow(service, "ann@example.org")
        await allow(service, "bob@example.org", jobs=1)
        session = await accepted(service)
        await service.handovers.give(session.id, ANN, EVE.name)
        with pytest.raises(NotAllowed):
            await service.handovers.take(session.id, EVE)
        await accepted(service, BOB)
        await service.handovers.give(session.id, ANN, BOB.name)
        with pytest.raises(NotAllowed):
            await service.handovers.take(session.id, BOB)
        assert (await service.sessions.get(session.id, ANN)).person == ANN.name
        assert (await used(service, ANN), await used(service, BOB)) == (1, 1)
        with pytest.raises(NotFound):
            await service.handovers.take(session.id, EVE), "it is offered to another now"


async def test_only_its_owner_gives_only_who_is_named_takes_and_both_can_let_it_be(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=TRIAL, loop=False) as service:
        await allow(service)
        session = await accepted(service)
        for person, to, error in ((BOB, EVE, SubletError), (ANN, ANN, BadRequest)):
            with pytest.raises(error):
                await service.handovers.give(session.id, person, to.name)
        await service.handovers.give(session.id, ANN, BOB.name)
        with pytest.raises(NotYours):
            await service.handovers.take(session.id, ANN)
        await service.handovers.drop(session.id, BOB)
        with pytest.raises(NotFound):
            await service.handovers.take(session.id, BOB)


async def test_what_needs_something_of_its_owner_or_is_over_stays_with_them(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=TRIAL, loop=False) as service:
        await allow(service)
        session = await accepted(service, data=[{"name": "x", "location": "http://8.8.8.8/x", "size": 1}])
        with pytest.raises(NotHandable):
            await service.handovers.give(session.id, ANN, BOB.name)
        other = await accepted(service)
        await service.handovers.give(other.id, ANN, BOB.name)
        await service.sessions.cancel_all([other.id], ANN)
        with pytest.raises(SubletError):
            await service.handovers.take(other.id, BOB)


async def test_what_another_broker_has_stays_with_whom_it_knows(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=TRIAL, loop=False) as service:
        await allow(service)
        session = await accepted(service)
        terms = Remote("https://far.example.org/sessions/1", session.created)
        away = replace(session, offer=replace(session.offer, terms=terms))
        offerset = await service.store.read(lambda tx: tx.offersets.get(session.offerset))
        assert offerset
        with pytest.raises(NotHandable, match="the offer of another broker"):
            check_transferable(away, offerset)


async def test_on_ones_own_service_there_is_nobody_to_give_to(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=TRIAL, loop=False) as service:
        with pytest.raises(NotAGateway):
            await service.handovers.give("3f2a", ME, "bob")


def test_claims_and_tokens_go_with_a_session_on_both_databases(store: Store) -> None:
    store.write_sync(define)
    session = store.write_sync(lambda tx: end_one(tx, "alice", NOON))
    store.write_sync(lambda tx: (tx.handovers.give_up_claims(session), tx.handovers.hand_over(session, "bob")))
    moved = store.read_sync(lambda tx: tx.sessions.get(session.id))
    assert moved
    assert moved.person == "bob"
