"""Seats of a booking for a group: each member takes one as their own session, and the organiser sees who has which."""

from __future__ import annotations

import asyncio
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.phases import Phase
from sublet.booking.model.series import Series
from sublet.booking.series import SeriesAsk
from sublet.kernel.errors import BadRequest, NoSeatLeft, NotAllowed, NotFound, NotHandable, NotYours
from sublet.people.model.people import Group
from sublet.people.model.person import Person
from sublet.service import Service
from tests.clocks import set_clock
from tests.contract.services import allow, serving

pytestmark = pytest.mark.anyio
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)  # a Monday
ROOM = {"room": {"kind": "memory", "nodes": 3, "cores": 4}}
ORGANISER, EVE = Person("prof@example.org"), Person("eve@example.org")
MEMBERS = [Person(f"s{number}@example.org") for number in range(4)]
REQUEST = {"image": "docker://busybox", "run": ["true"], "cores": 4}


async def workshop(service: Service, **more: Any) -> Series:
    """Three seats on two Wednesdays, for the group `course`, with three of its four members let in by the rules."""
    set_clock(service, lambda: NOON)

    def enrol(tx: Any) -> None:
        tx.groups.add(Group("course", NOON))
        for member in MEMBERS:
            tx.groups.join("course", member.name)

    await service.store.write(enrol)
    for person in (ORGANISER, *MEMBERS[:3], EVE):
        await allow(service, person.name)
    ask = SeriesAsk("wed 14:00-17:00 UTC", REQUEST, "workshop", count=2, seats=3, group="course", **more)
    held = await service.group_seats.propose(ORGANISER, ask)
    return await service.bookings.accept(held.id, ORGANISER)


def takers(series: Series) -> list[str]:
    return [seat.taker.partition("@")[0] for seat in series.booked]


async def test_each_member_takes_a_seat_as_a_session_of_their_own_and_no_two_the_same(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=ROOM, loop=False) as service:
        series = await workshop(service)
        [seen] = await service.group_seats.list_open(MEMBERS[0])
        assert [(seat.offer, seat.taker) for seat in seen.seats] == [("", "")] * 6, "others' sessions are not shown"
        assert await service.group_seats.list_open(EVE) == []
        await asyncio.gather(*(service.group_seats.claim(series.id[:8], member) for member in MEMBERS[:2]))
        mine = await service.group_seats.claim(series.id, MEMBERS[0])
        assert [seat.taker for seat in mine.seats if seat.offer] == [MEMBERS[0].name] * 2, "one at each time, once"
        for seat in mine.seats:
            if seat.offer:
                session = await service.sessions.get(seat.offer, MEMBERS[0])
                assert (session.person, session.phase) == (MEMBERS[0].name, Phase.ACCEPTED)
                with pytest.raises(NotYours):
                    await service.sessions.get(seat.offer, ORGANISER)
        whole = await service.bookings.get(series.id, ORGANISER)
        assert sorted(takers(whole)) == ["", "", "s0", "s0", "s1", "s1"]
        use = await service.store.read(lambda tx: tx.uses.of(MEMBERS[1].name, "system", "room", NOON))
        assert use.jobs == 2, "it counts as theirs"


async def test_who_is_no_member_or_whom_the_rules_do_not_let_takes_none(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=ROOM, loop=False) as service:
        series = await workshop(service)
        with pytest.raises(NotFound):
            await service.group_seats.claim(series.id, EVE)
        with pytest.raises(NotAllowed):
            await service.group_seats.claim(series.id, MEMBERS[3])
        assert takers(await service.bookings.get(series.id, ORGANISER)) == [""] * 6, "nothing has changed"
        with pytest.raises(BadRequest, match="yours already"):
            await service.group_seats.claim(series.id, ORGANISER)


async def test_free_seats_are_given_back_and_what_was_taken_stays(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=ROOM, loop=False) as service:
        series = await workshop(service)
        first = date(2026, 11, 18)
        await service.group_seats.claim(series.id, MEMBERS[0], first)
        with pytest.raises(NotFound):
            await service.group_seats.release(series.id, MEMBERS[0])
        some = await service.group_seats.release(series.id, ORGANISER, first)
        assert [seat.state.value for seat in some.seats] == ["booked", "released", "released", *["booked"] * 3]
        with pytest.raises(NoSeatLeft):
            await service.group_seats.claim(series.id, MEMBERS[1], first)
        cancelled = await service.bookings.cancel(series.id, ORGANISER)
        assert takers(cancelled)[0] == "s0"
        kept = await service.sessions.get(cancelled.seats[0].offer, MEMBERS[0])
        assert (kept.phase, kept.cancel_by) == (Phase.ACCEPTED, ""), "what someone took is theirs"
        gone = [await service.sessions.get(seat.offer, ORGANISER) for seat in cancelled.seats[1:]]
        assert all(session.cancel_by for session in gone)
        set_clock(service, lambda: NOON + timedelta(days=30))
        assert await service.group_seats.list_open(MEMBERS[0]) == []


async def test_a_seat_that_is_handed_over_is_known_as_the_takers(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=ROOM, loop=False) as service:
        series = await workshop(service)
        seat = series.seats[0]
        await service.handovers.give(seat.offer, ORGANISER, EVE.name)
        await service.handovers.take(seat.offer, EVE)
        assert takers(await service.bookings.get(series.id, ORGANISER))[0] == "eve"
        await service.bookings.cancel(series.id, ORGANISER)
        assert (await service.sessions.get(seat.offer, EVE)).phase is Phase.ACCEPTED


async def test_a_booking_for_a_group_needs_one_and_brings_nothing_of_its_organisers(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=ROOM, loop=False) as service:
        ask = SeriesAsk("wed 14:00-17:00 UTC", REQUEST, count=1, group="nobody")
        with pytest.raises(NotFound, match="nobody"):
            await service.group_seats.propose(ORGANISER, ask)
        data = SeriesAsk("wed 14:00-17:00 UTC", {**REQUEST, "data": ["x"]}, count=1, group="iam:/course")
        with pytest.raises(NotHandable):
            await service.group_seats.propose(ORGANISER, data)
