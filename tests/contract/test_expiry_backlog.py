"""Offers that expire by the hundreds keep no accepted session from going on."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sublet.app import build_loop
from sublet.booking.loop.reconcile import BATCH
from sublet.booking.model.phases import Phase
from tests.brokers import listening
from tests.clocks import set_clock
from tests.contract.services import ME, OTHER, ask, serving
from tests.foreign_broker import ForeignBroker

pytestmark = pytest.mark.anyio
LARGE = {"trial": {"kind": "memory", "nodes": 64, "cores": 64}}


async def test_an_accepted_session_goes_on_while_more_offers_expire_than_a_turn_takes(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False, platforms=LARGE) as service:
        mine = await ask(service)
        days = [f"{service.now() + timedelta(days=day):%Y-%m-%dT%H:%M:%SZ}/PT1H" for day in range(1, 9)]
        offers = 0
        while offers <= BATCH:
            offers += len((await ask(service, OTHER, start=days, time="10m")).offers)
        session = await service.sessions.accept(mine.offers[0].id, ME)
        later = service.now() + 2 * service.settings.hold
        set_clock(service, lambda: later)
        loop = build_loop(service)
        try:
            await loop.turn()
            assert session.id in loop.tasks
            assert await service.store.read(lambda tx: tx.sessions.list(phases=[Phase.OFFERED], limit=1).items)
        finally:
            await loop.stop()


async def test_offers_of_another_broker_free_no_room_here_when_they_expire(tmp_path: Path) -> None:
    async with (
        listening(ForeignBroker().app) as url,
        serving(tmp_path, loop=False, platforms={**LARGE, "far": {"kind": "broker", "url": url}}) as service,
    ):
        answer = await ask(service)
        assert {offer.offer.platform for offer in answer.offers} == {"trial", "far"}
        later = service.now() + 2 * service.settings.hold
        set_clock(service, lambda: later)
        loop = build_loop(service)
        try:
            await loop.turn()
            assert service.signals.freed == {"trial"}
        finally:
            await loop.stop()
