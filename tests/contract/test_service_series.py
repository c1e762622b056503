"""Recurring bookings: one accept and many sessions, all or those that fit, left out, moved and given back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.phases import ACTIVE, Phase
from sublet.booking.model.series import Series, SeriesState
from sublet.booking.series import SeriesAsk
from sublet.kernel.errors import BadRequest, NotFound, OfferExpired, SeriesHasNoRoom, SubletError
from sublet.service import Service
from sublet.store import Store
from tests.clocks import set_clock
from tests.contract.services import ME, OTHER, ask, serving

pytestmark = pytest.mark.anyio
NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)  # a Monday
MONDAYS = "mon 09:00-12:00 Europe/Berlin"
ROOM = {"room": {"kind": "memory", "nodes": 1, "cores": 4}}
FIRST = datetime(2026, 11, 23, 8, tzinfo=UTC)
WEEK = timedelta(days=7)


def booking(**more: Any) -> SeriesAsk:
    return SeriesAsk(**{"every": MONDAYS, "request": {"run": ["true"], "cores": 4}, "count": 3} | more)


def states(series: Series) -> list[str]:
    return [seat.state.value for seat in series.seats]


async def phases(service: Service, series: Series) -> list[Phase]:
    return [(await service.sessions.get(seat.offer, ME)).phase for seat in series.seats if seat.offer]


async def test_one_accept_makes_a_session_at_each_time(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=ROOM, loop=False) as service:
        set_clock(service, lambda: NOON)
        proposed = await service.bookings.propose(ME, booking())
        assert (proposed.state, states(proposed)) == (SeriesState.OFFERED, ["offered"] * 3)
        booked = await service.bookings.accept(proposed.id[:8], ME)
        assert (booked.state, states(booked)) == (SeriesState.BOOKED, ["booked"] * 3)
        for number, seat in enumerate(booked.seats):
            session = await service.sessions.get(seat.offer, ME)
            assert (session.phase, session.start) == (Phase.ACCEPTED, FIRST + number * WEEK)
            assert session.offer.duration == timedelta(hours=3)
        assert await service.bookings.accept(proposed.id, ME) == booked, "accepting twice is once"
        with pytest.raises(NotFound):
            await service.bookings.get(proposed.id, OTHER)
        assert await service.bookings.list_own(ME) == [booked]


async def test_all_or_none_unless_those_that_fit_are_wanted(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=ROOM, loop=False) as service:
        set_clock(service, lambda: NOON)
        taken = await ask(service, OTHER, cores=4, time="1h", start=f"{FIRST + WEEK:%Y-%m-%dT%H:%M:%SZ}/PT0S")
        await service.sessions.accept(taken.offers[0].id, OTHER)
        with pytest.raises(SeriesHasNoRoom) as raised:
            await service.bookings.propose(ME, booking())
        assert "1 of 3 sessions have no room; the first of them at 2026-11-30 08:00 UTC" in raised.value.message
        assert await service.offers.open_offers(ME) == [], "nothing is held"
        some = await service.bookings.accept((await service.bookings.propose(ME, booking(fit="some"))).id, ME)
        assert states(some) == ["booked", "missed", "booked"]
        assert some.seats[1].why


async def test_a_workshop_has_as_many_seats_at_once_as_there_is_room_for(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=ROOM, loop=False) as service:
        set_clock(service, lambda: NOON)
        workshop = booking(count=1, seats=4, request={"run": ["true"], "cores": 1})
        booked = await service.bookings.accept((await service.bookings.propose(ME, workshop)).id, ME)
        assert states(booked) == ["booked"] * 4
        with pytest.raises(SeriesHasNoRoom):
            await service.bookings.propose(ME, workshop)


async def test_a_day_is_left_out_another_is_moved_and_the_rest_is_given_back(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=ROOM) as service:
        booked = await service.bookings.accept((await service.bookings.propose(ME, booking())).id, ME)
        days = [seat.start.date() for seat in booked.seats]
        skipped = await service.bookings.skip(booked.id, ME, days[0])
        assert states(skipped) == ["skipped", "booked", "booked"]
        tuesday = booked.seats[1].start + timedelta(days=1)
        moved = await service.bookings.move(booked.id, ME, days[1], f"{tuesday:%Y-%m-%dT%H:%M:%SZ}")
        assert states(moved) == ["skipped", "moved", "booked", "booked"]
        assert (moved.seats[3].start, moved.seats[3].number) == (tuesday, booked.seats[1].number)
        with pytest.raises(BadRequest):
            await service.bookings.skip(booked.id, ME, days[0])
        third = moved.seats[2]
        with pytest.raises(SeriesHasNoRoom):
            await service.bookings.move(booked.id, ME, tuesday.date(), f"{third.start:%Y-%m-%dT%H:%M:%SZ}")
        assert await service.bookings.get(booked.id, ME) == moved, "without room there, everything stays as it is"
        cancelled = await service.bookings.cancel(booked.id, ME)
        assert cancelled.state is SeriesState.CANCELLED
        assert states(cancelled) == ["skipped", "moved", "cancelled", "cancelled"]
        for seat in cancelled.seats:
            session = await service.sessions.get(seat.offer, ME)
            assert session.cancel_by or session.phase is Phase.CANCELLED


async def test_what_is_refused_or_too_late_takes_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=ROOM, loop=False) as service:
        set_clock(service, lambda: NOON)
        for wrong in ({"start": "now"}, {"time": "1h"}, {"executable": {}}):
            with pytest.raises(BadRequest):
                await service.bookings.propose(ME, booking(request={"run": ["true"], **wrong}))
        with pytest.raises(BadRequest):
            await service.bookings.propose(ME, booking(fit="most"))
        proposed = await service.bookings.propose(ME, booking())
        set_clock(service, lambda: NOON + timedelta(hours=1))
        with pytest.raises(OfferExpired):
            await service.bookings.accept(proposed.id, ME)
        assert not [phase for phase in await phases(service, proposed) if phase in ACTIVE]


async def test_one_seat_that_can_not_be_taken_leaves_all_untaken(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=ROOM, loop=False) as service:
        set_clock(service, lambda: NOON)
        proposed = await service.bookings.propose(ME, booking())
        await service.sessions.reject(proposed.seats[1].offer, ME)
        with pytest.raises(SubletError):
            await service.bookings.accept(proposed.id, ME)
        assert not [phase for phase in await phases(service, proposed) if phase in ACTIVE]
        assert (await service.bookings.get(proposed.id, ME)).state is SeriesState.OFFERED


def test_a_booking_is_kept_on_both_databases(store: Store) -> None:
    made = Series("3f2a9c1d-0000", "me", "course", MONDAYS, 1, "all", "{}", NOON, NOON + WEEK)
    store.write_sync(lambda tx: tx.series.add(made))
    assert store.read_sync(lambda tx: tx.series.find("3f2a", "me")) == [made]
    assert store.read_sync(lambda tx: tx.series.find("3f2a", "other")) == []
    assert store.read_sync(lambda tx: tx.series.find("*", "me")) == []
