"""Unaccepted offers give way to a later request of the same person, and to nobody else's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sublet.app import open_service
from sublet.booking.model.calendar import Calendar
from sublet.booking.model.giving_way import Precedence
from sublet.booking.model.offer import Take
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import EndKind, OfferSet
from sublet.kernel.errors import NotAllowedNow, OfferGaveWay, TooMany
from sublet.kernel.settings import Settings
from sublet.service import Service
from tests.contract.services import FIRM, KEEP, ME, OTHER, allow, ask, serving

pytestmark = pytest.mark.anyio
HELD = "urn:held"


@pytest.fixture
async def service(store_url: str, tmp_path: Path) -> AsyncIterator[Service]:
    """A service with 16 cores, on each database; nothing expires while nobody looks."""
    settings = Settings.load(tmp_path, database=store_url, platforms={"trial": {"kind": "memory", "takes": "10h"}})
    async with open_service(settings, loop=False) as service:
        yield service


async def phases(service: Service, found: OfferSet) -> set[Phase]:
    """The phases of a set's offers, now."""
    return {offer.phase for offer in (await service.asking.offerset(found.id, ME)).offers}


def starts_now(service: Service, found: OfferSet) -> bool:
    """Whether its first offer starts within seconds."""
    return bool(found.offers) and found.offers[0].offer.start - service.now() < timedelta(seconds=5)


async def taken_cores(service: Service) -> int:
    """The cores that are held or booked in the next minute."""
    now = service.now()
    work = lambda tx: tx.books.calendar("trial").free(now, now + timedelta(minutes=1))  # noqa: E731
    return 16 - sum(shape.cores for shape in (await service.store.write(work)).values())


async def test_asking_again_and_again_starts_now_each_time(service: Service) -> None:
    sets = [await ask(service, cores=16, time="1h") for _ in range(4)]
    assert all(starts_now(service, one) for one in sets)
    assert [await phases(service, one) for one in sets] == [{Phase.REJECTED}] * 3 + [{Phase.OFFERED}]
    assert await taken_cores(service) == 16
    session = await service.sessions.accept(sets[-1].offers[0].id, ME)
    assert session.phase is Phase.ACCEPTED


async def test_what_fits_beside_earlier_offers_leaves_them_alone(service: Service) -> None:
    first, second = await ask(service, cores=8), await ask(service, cores=8)
    assert await phases(service, first) == await phases(service, second) == {Phase.OFFERED}
    for found in (first, second):
        assert (await service.sessions.accept(found.offers[0].id, ME)).phase is Phase.ACCEPTED


async def test_only_as_many_offers_give_way_as_are_needed(service: Service) -> None:
    sets = [await ask(service, cores=4) for _ in range(4)]
    wide = await ask(service, cores=8)
    assert starts_now(service, wide)
    gone = [one for one in sets if await phases(service, one) == {Phase.REJECTED}]
    assert gone == sets[:2], "the oldest give way first"
    assert await taken_cores(service) == 16


async def test_of_a_set_only_the_offers_without_room_give_way(service: Service) -> None:
    day = (service.now() + timedelta(days=3)).date().isoformat()
    spread = await ask(service, cores=16, time="1h", start=f"{day}T09:00:00Z/{day}T12:00:00Z")
    first = spread.offers[0].offer
    narrow = await ask(service, cores=16, time="30m", start=f"{first.start:%Y-%m-%dT%H:%M:%SZ}/PT1M")
    assert narrow.offers[0].offer.start == first.start
    now = {one.offer.start: one.phase for one in (await service.asking.offerset(spread.id, ME)).offers}
    assert now[first.start] is Phase.REJECTED
    assert {phase for start, phase in now.items() if start >= narrow.offers[0].offer.end} == {Phase.OFFERED}
    last = (await service.asking.offerset(spread.id, ME)).offers[-1]
    assert (await service.sessions.accept(last.id, ME)).phase is Phase.ACCEPTED


async def test_accepting_an_offer_that_gave_way_says_so(service: Service) -> None:
    first, second = await ask(service, cores=16), await ask(service, cores=16)
    with pytest.raises(OfferGaveWay) as refused:
        await service.sessions.accept(first.offers[0].id, ME)
    assert second.id[:8] in refused.value.message
    assert "Ask again" in refused.value.advice
    gone = await service.sessions.get(first.offers[0].id, ME)
    assert gone.end is not None
    assert (gone.end.kind, gone.end.detail) == (EndKind.GAVE_WAY, second.id)
    _, sentences = await service.explanations.explain(gone.id, ME)
    assert any("gave way to a later request" in sentence for sentence in sentences)


async def test_nobody_takes_what_is_held_for_another_or_what_is_accepted(service: Service) -> None:
    theirs = await ask(service, OTHER, cores=8)
    mine = await ask(service, cores=8, time="2h")
    await service.sessions.accept(mine.offers[0].id, ME)
    later = await ask(service, cores=16, time="1h")
    assert not starts_now(service, later)
    assert (await service.sessions.accept(theirs.offers[0].id, OTHER)).phase is Phase.ACCEPTED
    assert await taken_cores(service) == 16


async def test_offers_that_are_to_be_kept_stay_and_are_named_as_the_cause(service: Service) -> None:
    first = await ask(service, cores=16, time="2h")
    second = await ask(service, cores=16, time="1h", precedence=KEEP)
    assert await phases(service, first) == {Phase.OFFERED}
    assert not starts_now(service, second)
    [reason] = [reason for reason in second.reasons if reason.kind == HELD]
    assert reason.message.startswith("Your own unaccepted offer holds 16 cores of trial until ")
    assert reason.nearest == "sublet reject --all"
    refused = await ask(service, cores=16, start="within 5m", precedence=KEEP)
    assert refused.result == "NO"
    assert [reason.kind for reason in refused.reasons].count(HELD) == 1


async def test_offers_that_are_about_to_be_accepted_do_not_give_way(service: Service) -> None:
    firm = await ask(service, cores=16, time="2h", precedence=FIRM)
    later = await ask(service, cores=16, time="1h")
    assert await phases(service, firm) == {Phase.OFFERED}
    assert "Your own" in next(reason.message for reason in later.reasons if reason.kind == HELD)
    await service.sessions.accept(firm.offers[0].id, ME)


async def test_offers_to_others_are_named_without_their_names(service: Service) -> None:
    await ask(service, OTHER, cores=16, time="2h")
    mine = await ask(service, cores=1, start="within 5m")
    assert mine.result == "NO"
    [reason] = [reason for reason in mine.reasons if reason.kind == HELD]
    assert reason.message.startswith("Unaccepted offers to others hold 16 cores of trial until ")
    assert OTHER.name not in reason.message.replace("others", "")
    assert not reason.nearest


async def test_a_set_that_is_replaced_is_given_back_only_for_offers(service: Service) -> None:
    first = await ask(service, cores=2)
    instead = Precedence(instead_of=first.id)
    assert (await ask(service, cores=4000, precedence=instead)).result == "NO"
    assert await phases(service, first) == {Phase.OFFERED}
    assert (await ask(service, cores=4, precedence=instead)).result == "YES"
    assert await phases(service, first) == {Phase.REJECTED}
    assert await taken_cores(service) == 4
    theirs = await ask(service, OTHER, cores=2)
    await ask(service, cores=1, precedence=Precedence(instead_of=theirs.id))
    assert (await service.sessions.accept(theirs.offers[0].id, OTHER)).phase is Phase.ACCEPTED


async def test_all_open_offers_are_listed_and_given_back_at_once(service: Service) -> None:
    sets = [await ask(service, cores=2) for _ in range(3)]
    theirs = await ask(service, OTHER, cores=2)
    accepted = await service.sessions.accept(sets[0].offers[0].id, ME)
    assert [one.id for one in await service.offers.open_offers(ME)] == [sets[2].id, sets[1].id]
    assert await service.offers.reject_set(sets[1].id, ME) == len(sets[1].offers)
    assert await service.offers.reject_all(ME) == len(sets[2].offers)
    assert await service.offers.reject_all(ME) == 0
    assert await service.offers.open_offers(ME) == []
    assert (await service.sessions.get(accepted.id, ME)).phase is Phase.ACCEPTED
    assert [one.id for one in await service.offers.open_offers(OTHER)] == [theirs.id]
    assert await taken_cores(service) == 4


async def test_accepting_old_offers_while_new_ones_are_asked_for_never_oversells(service: Service) -> None:
    for _ in range(12):
        old = await ask(service, cores=16, time="1h")
        taken, new = await asyncio.gather(
            service.sessions.accept(old.offers[0].id, ME), ask(service, cores=16, time="1h"), return_exceptions=True
        )
        assert isinstance(new, OfferSet)
        assert isinstance(taken, OfferGaveWay) or not isinstance(taken, BaseException)
        assert await taken_cores(service) <= 16
        assert await is_consistent(service)
        await service.offers.reject_all(ME)


async def test_two_processes_decide_together_what_gives_way(store_url: str, tmp_path: Path, service: Service) -> None:
    settings = Settings.load(tmp_path / "two", database=store_url, platforms={"trial": {"kind": "memory"}})
    async with open_service(settings, loop=False) as other:
        for _ in range(8):
            old = await ask(service, cores=16, time="30m")
            results = await asyncio.gather(
                service.sessions.accept(old.offers[0].id, ME),
                *(ask(other if turn % 2 else service, cores=16, time="30m") for turn in range(4)),
                return_exceptions=True,
            )
            assert not [one for one in results[1:] if isinstance(one, BaseException)]
            assert isinstance(results[0], OfferGaveWay) or not isinstance(results[0], BaseException)
            for one in (service, other):
                assert await taken_cores(one) == 16
                assert await is_consistent(one)
            await other.offers.reject_all(ME)


def add(calendar: Calendar, key: str, takes: tuple[Take, ...]) -> bool:
    """Book them if there is room; whether there was."""
    if calendar.fits(takes):
        calendar.put(key, takes)
        return True
    return False


async def is_consistent(service: Service) -> bool:
    """Whether every open offer is held, every accepted one booked, and nothing is booked twice."""
    page = await service.sessions.page(ME, limit=500)
    live = [one for one in page.items if one.phase in (Phase.OFFERED, Phase.ACCEPTED)]
    keys = {one.offerset if one.phase is Phase.OFFERED else one.id for one in live}

    def fits(tx: Any) -> bool:
        calendar = tx.books.calendar("trial")
        takes = {key: calendar.takes(key) for key in keys}
        with calendar.set_aside(keys):
            fitting = [key for key, held in takes.items() if held and add(calendar, key, held)]
            for key in fitting:
                calendar.release(key)
        return len(fitting) == len(keys)

    return await service.store.write(fits)


async def test_runs_that_are_started_together_leave_each_other_their_offers(service: Service) -> None:
    document = json.dumps({"run": ["true"], "cores": 16, "time": "1h"}).encode()
    asked = await service.asking.read(document, "application/json", ME)
    earlier = await ask(service, cores=16, time="1h")
    sessions = await asyncio.gather(*(service.direct.run(ME, asked) for _ in range(4)))
    starts = sorted(session.start for session in sessions if session.start)
    assert len(starts) == 4
    assert all(later - sooner >= timedelta(hours=1) for sooner, later in pairwise(starts))
    assert starts[0] - service.now() < timedelta(seconds=5)
    assert await phases(service, earlier) == {Phase.REJECTED}
    assert await is_consistent(service)


async def test_an_offer_that_was_declined_is_not_one_that_gave_way(service: Service) -> None:
    found = await ask(service)
    await service.sessions.reject(found.offers[0].id, ME)
    with pytest.raises(NotAllowedNow):
        await service.sessions.accept(found.offers[0].id, ME)


async def test_a_gateway_limits_how_often_someone_asks(tmp_path: Path) -> None:
    limits = {"asks_per_person": "3/10m"}
    async with serving(tmp_path, mode="gateway", throttle=limits, loop=False) as service:
        await allow(service)
        for _ in range(3):
            await ask(service, run=None, image="docker://busybox")
        with pytest.raises(TooMany, match="asked for offers too often") as refused:
            await ask(service, run=None, image="docker://busybox")
        assert 0 < refused.value.values["seconds"] <= 600
        assert (await ask(service, OTHER, run=None, image="docker://busybox")).result == "YES"
    async with serving(tmp_path / "own", throttle=limits, loop=False) as own:
        for _ in range(5):
            assert (await ask(own)).result == "YES"
