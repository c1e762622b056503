"""A whole service with a Grid Engine behind it: offers of both terms, one accepted and run in its reservation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.phases import Phase
from tests.contract.services import ME, ask, over, serving
from tests.engines.asking import PATIENCE
from tests.engines.batch_sites import settings_of
from tests.engines.gridengine_server import serve_gridengine
from tests.engines.machines import EngineMachine

pytestmark = [pytest.mark.anyio, pytest.mark.engines]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineMachine]:
    with serve_gridengine(tmp_path_factory.mktemp("service") / "machine") as machine:
        yield machine


def settings_for(site: EngineMachine) -> dict[str, Any]:
    quick = {"poll": "1s", "look": "1s", "patience": "2s", "reserves_within": "10s", "lead": "20s"}
    return {"platforms": {"grid": {"kind": "gridengine", **settings_of(site), **quick}}, "answer_within": "20s"}


async def wait_for_reservations(site: EngineMachine, count: int) -> None:
    """Wait until so many are there."""
    async with asyncio.timeout(PATIENCE):
        while True:
            shown = await asyncio.to_thread(site.run_as_person, "qrstat -u '*' | grep -c researcher", check=False)
            if int(shown or 0) == count:
                return
            await asyncio.sleep(0.5)


async def test_a_booked_offer_runs_in_its_reservation_and_nothing_is_left(site: EngineMachine, tmp_path: Path) -> None:
    async with serving(tmp_path, **settings_for(site)) as service:
        offerset = await ask(service, run=["sh", "-c", "echo here >made; exit 0"], platform="grid", time="2m")
        assert {offer.offer.terms.kind for offer in offerset.offers} == {"booked", "predicted"}
        [booked] = [offer for offer in offerset.offers if offer.offer.terms.kind == "booked"]
        await service.sessions.accept(booked.id, ME)
        ended = await over(service, booked.id, seconds=PATIENCE)
        assert ended.phase is Phase.COMPLETED
        assert ended.started
        assert ended.started >= booked.offer.start - timedelta(seconds=1)
        await wait_for_reservations(site, 0)


async def test_what_nobody_takes_is_given_up_also_by_the_next_service(site: EngineMachine, tmp_path: Path) -> None:
    async with serving(tmp_path, **settings_for(site)) as service:
        first = await ask(service, platform="grid", time="2m")
        await wait_for_reservations(site, 1)
        for offer in first.offers:
            await service.sessions.reject(offer.id, ME)
        await wait_for_reservations(site, 0)
        await ask(service, platform="grid", time="2m")
        await wait_for_reservations(site, 1)
    async with serving(tmp_path, **settings_for(site)) as service:  # which finds it there
        offered = await service.sessions.page(ME, phases=[Phase.OFFERED])
        for session in offered.items:
            await service.sessions.reject(session.id, ME)
        await wait_for_reservations(site, 0)
