"""Hints in answers: out of the runs that ended well, one's own, and gone when they are forgotten."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.archive.archive import ArchiveFilter
from sublet.archive.model.habits import ENOUGH, KEPT
from sublet.archive.model.records import COLUMNS
from sublet.archive.store.records import ADD
from sublet.archive.store.tables import HINTS
from sublet.booking.model.estimate import Sample
from sublet.booking.model.offer import HINT, Offer, Predicted
from sublet.booking.model.request import GIB, Executable, Request, Window
from sublet.booking.model.run_time import Run
from sublet.booking.model.session import OfferSet
from sublet.booking.model.shape import Shape
from sublet.booking.model.timeline import micros
from sublet.booking.platforms.start_history import search_by_record
from sublet.booking.views.convert import offer_view
from sublet.kernel.clock import utc_now
from sublet.service import Service
from sublet.store import Store, Tx
from tests.clocks import set_clock
from tests.contract.services import ME, OTHER, ask, over, serving
from tests.contract.stored import NOON

pytestmark = pytest.mark.anyio
TRIAL = {"trial": {"kind": "memory", "takes": "0s", "nodes": 2, "cores": 8}}
WISH = {"run": ["python3", "sim.py"], "memory": "8GiB", "time": "2h"}

TEXTS = [name for name, hint in HINTS.items() if hint is str]


def hints(answer: OfferSet) -> dict[str, str]:
    return {reason.field: reason.nearest for reason in answer.reasons if reason.kind == HINT}


async def remember(service: Service, person: str, label: str = "command sim.py") -> None:
    def work(tx: Tx) -> None:
        who = tx.archive.find_who(person)
        for _ in range(ENOUGH):
            tx.habits.add(who, label, Run(60.0, 0.9, GIB), service.now())

    await service.store.write(work)


async def test_ones_own_runs_give_hints_to_oneself_alone_until_they_are_forgotten(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=TRIAL, loop=False) as service:
        await remember(service, "me")
        assert hints(await ask(service, **WISH)) == {"memory": "1.5GiB", "time": "5m"}
        assert hints(await ask(service, OTHER, **WISH)) == {}
        assert hints(await ask(service, run=["python3", "other.py"], memory="8GiB")) == {}
        assert hints(await ask(service, **{**WISH, "memory": "1000GiB"})) == {}, "a NO has reasons, not advice"
        await service.archive.erase(ME)
        set_clock(service, lambda: utc_now() + timedelta(minutes=2))  # what was looked at is remembered for one
        assert hints(await ask(service, **WISH)) == {}


async def test_a_run_that_ended_well_is_learnt_from_and_one_that_was_cancelled_is_not(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms={"trial": {"kind": "memory", "takes": "1s"}}) as service:
        for cancelled in (False, True):
            session = await service.sessions.accept((await ask(service, **WISH)).offers[0].id, ME)
            if cancelled:
                await service.sessions.cancel(session.id, ME)
            await over(service, session.id)
        runs = await service.store.read(lambda tx: tx.habits.of("me", "command sim.py"))
        assert len(runs) == 1
        assert runs[0].wall > 0


def test_the_newest_runs_are_kept_and_old_programs_go_on_both_databases(store: Store) -> None:
    def fill(tx: Tx) -> None:
        who = tx.archive.find_who("alice")
        for number in range(KEPT + 7):
            tx.habits.add(who, "command sim", Run(float(number), 0, 0), NOON)

    store.write_sync(fill)
    runs = store.read_sync(lambda tx: tx.habits.of("alice", "command sim"))
    assert [run.wall for run in runs] == [float(number) for number in range(7, KEPT + 7)]
    assert store.read_sync(lambda tx: tx.habits.of("bob", "command sim")) == []
    assert store.write_sync(lambda tx: tx.habits.forget(NOON)) == 0
    assert store.write_sync(lambda tx: tx.habits.forget(NOON.replace(year=2031))) == 1


async def test_offers_say_how_long_ones_own_runs_took_there(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=TRIAL, loop=False) as service:
        await remember(service, "me")
        [first, *_] = (await ask(service, **WISH)).offers
        estimate = first.offer.run_time
        assert estimate is not None
        assert (estimate.likely, estimate.runs, estimate.program) == (timedelta(minutes=1), ENOUGH, "sim.py")
        assert all(offer.offer.run_time is None for offer in (await ask(service, OTHER, **WISH)).offers)
        view = offer_view(first)
        assert view.run_time is not None
        assert view.run_time.sentence == f"1 min, by your last {ENOUGH} runs of sim.py"
        assert first.offer.start < view.run_time.over <= first.offer.start + timedelta(minutes=2)


async def test_how_often_run_times_came_true_is_counted(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms={"trial": {"kind": "memory", "takes": "1s"}}) as service:
        await remember(service, "me")  # of a minute each: what takes a second is shorter than was said
        session = await service.sessions.accept((await ask(service, **WISH)).offers[0].id, ME)
        await over(service, session.id)
        [row] = await service.archive.calibrate(ME)
        assert (row.runs, row.runs_inside, row.runs_shorter, row.runs_longer) == (1, 0, 1, 0)
        [kept], _ = await service.archive.page(ME, ArchiveFilter())
        assert (kept.record.run_low, kept.record.run_likely, kept.record.run_high) == (60, 60, 60)


def test_runs_of_an_app_are_everybodys_where_ones_own_are_too_few(store: Store) -> None:
    def fill(tx: Tx) -> list[Run]:
        for number in range(3):
            record = dict.fromkeys(COLUMNS) | dict.fromkeys(TEXTS, "")
            amounts = {"nodes": 2, "cores": 4, "memory": 1, "gpus": 0, "parts": 1, "time_limit": 60.0}
            amounts |= {"staging_likely": 0.0, "staging_high": 0.0, "wall": 10.0 + number, "cpu": 5.0}
            times = {"asked": micros(NOON) + number, "ended": micros(NOON)}
            named = {"session": f"s{number}", "app": "flood@3" if number else "floods@1", "phase": "COMPLETED"}
            tx.archive._sql.change(ADD, record | amounts | times | named)
        return tx.archive.list_runs("flood", NOON)

    assert [(run.wall, run.size) for run in store.write_sync(fill)] == [(11.0, 8), (12.0, 8)]


async def test_a_full_evening_is_answered_with_the_earlier_hour_that_has_room(tmp_path: Path) -> None:
    """Both cores are taken from 18:00 to 22:00: who asks for 18:00 on is told that it could be at noon."""
    one = {"one": {"kind": "memory", "nodes": 1, "cores": 2}}
    async with serving(tmp_path, platforms=one, loop=False) as service:
        set_clock(service, lambda: NOON)
        evening = {"start": "2030-01-07T18:00:00Z/PT8H", "cores": 2}
        taken = await ask(service, OTHER, time="4h", **evening)
        await service.sessions.accept(taken.offers[0].id, OTHER)
        answer = await ask(service, time="1h", **evening)
        [hint] = [reason for reason in answer.reasons if reason.kind == HINT]
        assert hint.message == "From 2030-01-07 12:00 UTC on it would start 10 h sooner."
        better = await ask(service, time="1h", cores=2, start=hint.nearest)
        assert better.offers[0].offer.start == NOON
        free = await ask(service, time="1h", cores=2, start="2030-01-07T23:00:00Z/PT1H")
        assert hints(free) == {}, "they get the time that they asked for"


def test_a_record_says_at_which_hour_a_queue_would_start_sooner() -> None:
    """Who comes by day waits for hours, who comes at night for minutes: a night's job is like the nights before."""
    starts = [NOON - timedelta(days=day, hours=hour) for day in range(1, 11) for hour in (0, 10)]
    samples = [
        Sample("q", 1, 1, at + timedelta(hours=1), at + timedelta(hours=4 if at.hour == 12 else 0.1), at)
        for at in starts
        for _ in range(3)
    ]
    p50 = NOON + timedelta(hours=4)
    terms = Predicted(NOON, p50, p50, 60, planned=NOON + timedelta(hours=1))
    offer = Offer("c", "exec", p50, p50, timedelta(hours=1), (), Shape(1, 1), terms=terms, queue="q")
    search = search_by_record(offer, samples, NOON)
    request = Request(Executable("command"), duration=timedelta(hours=1))
    night = NOON + timedelta(hours=14)
    at_night = search(replace(request, windows=(Window(night, night + timedelta(hours=6)),)))
    assert at_night is not None
    assert at_night - night < timedelta(hours=1)
    assert search_by_record(offer, samples[:5], NOON)(request) is None
