"""Predicted starts have a track record of their own, and are corrected by it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.booking.model.estimate import ENOUGH, Sample
from sublet.booking.model.offer import Predicted
from sublet.booking.model.phases import Phase
from sublet.store import Store
from tests.contract.services import ME, ask, in_phase, reach, serving

pytestmark = pytest.mark.anyio
QUEUE = {"queue": {"kind": "memory", "terms": "predicted", "waits": ["0s", "1s", "2s"], "takes": "1h"}}
NOW = datetime(2026, 11, 1, tzinfo=UTC)


def late(minutes: int, at: datetime) -> Sample:
    return Sample("played", 1, 1, at + timedelta(minutes=5), at + timedelta(minutes=5 + minutes), at)


async def test_a_start_is_recorded_once_beside_its_plan(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=QUEUE) as service:
        mine = await ask(service)
        terms = mine.offers[0].offer.terms
        assert isinstance(terms, Predicted)
        assert terms.samples == 0
        await service.sessions.accept(mine.offers[0].id, ME)
        running = await reach(service, mine.offers[0].id, in_phase(Phase.RUNNING))
        [sample] = await service.store.read(lambda tx: tx.starts.since("queue", NOW))
        assert (sample.queue, sample.planned, sample.actual) == ("played", terms.planned, running.started)
        await service.sessions.cancel(running.id, ME)


async def test_with_enough_starts_a_prediction_is_the_plan_and_how_late_such_plans_were(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=QUEUE) as service:
        past = service.now() - timedelta(days=1)
        for number in range(ENOUGH):
            sample = late(number, past)
            await service.store.write(lambda tx, s=sample, n=number: tx.starts.add(f"{n:036}", "queue", s))
        mine = await ask(service)
        terms = mine.offers[0].offer.terms
        assert isinstance(terms, Predicted)
        assert terms.planned is not None
        assert terms.samples == ENOUGH
        assert terms.p10 < terms.p50 < terms.p90
        waits = timedelta(minutes=5 + (ENOUGH - 1) / 2)  # from being asked for; the plan was five minutes
        assert abs(terms.p50 - mine.created - waits) < timedelta(seconds=5)
        refused = await ask(service, start="within 5m")
        assert refused.result == "NO"
        assert refused.reasons[0].nearest


def test_starts_are_kept_on_both_databases_and_forgotten_when_old(store: Store) -> None:
    for number, days in enumerate((200, 10, 1)):
        sample = late(1, NOW - timedelta(days=days))
        store.write_sync(lambda tx, s=sample, n=number: tx.starts.add(f"{n:036}", "queue", s))
        store.write_sync(lambda tx, s=sample, n=number: tx.starts.add(f"{n:036}", "queue", s))
    since = store.read_sync(lambda tx: tx.starts.since("queue", NOW - timedelta(days=90)))
    assert since == [late(1, NOW - timedelta(days=10)), late(1, NOW - timedelta(days=1))]
    assert store.write_sync(lambda tx: tx.starts.forget(NOW - timedelta(days=90))) == 1
    assert store.read_sync(lambda tx: tx.starts.since("other", NOW - timedelta(days=900))) == []
