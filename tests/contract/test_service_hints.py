"""Hints in answers: out of the runs that ended well, one's own, and gone when they are forgotten."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sublet.archive.model.habits import ENOUGH, KEPT, Run
from sublet.booking.model.offer import HINT
from sublet.booking.model.request import GIB
from sublet.booking.model.session import OfferSet
from sublet.kernel.clock import utc_now
from sublet.service import Service
from sublet.store import Store, Tx
from tests.clocks import set_clock
from tests.contract.services import ME, OTHER, ask, over, serving
from tests.contract.stored import NOON

pytestmark = pytest.mark.anyio
TRIAL = {"trial": {"kind": "memory", "takes": "0s", "nodes": 2, "cores": 8}}
WISH = {"run": ["python3", "sim.py"], "memory": "8GiB", "time": "2h"}


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
