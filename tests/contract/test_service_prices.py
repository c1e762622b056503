"""Offers are priced by platform and hour, limits are kept at their hour, and a cheaper hour is a hint."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.archive.archive import ArchiveFilter
from sublet.booking.model.offer import HINT
from sublet.booking.model.prices import CARBON
from sublet.booking.model.session import OfferSet
from sublet.service import Service
from tests.clocks import set_clock
from tests.contract.services import ME, ask, over, serving

pytestmark = pytest.mark.anyio
NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
PRICES = {
    "core_hour": 2.0,
    "hours": [{"when": "daily 19:00-07:00 UTC", "factor": 0.5}],
    "platforms": {"dear": {"core_hour": 8.0}, "queue": {"core_hour": 1.0}},
}
PLATFORMS = {
    "cheap": {"kind": "memory", "cores": 4},
    "dear": {"kind": "memory", "cores": 4},
    "queue": {"kind": "memory", "terms": "predicted", "waits": ["0s", "1s", "2s"]},
}


def first(answer: OfferSet, platform: str) -> tuple[datetime, float]:
    session = next(offer for offer in answer.offers if offer.offer.platform == platform)
    return session.offer.start, session.offer.costs[0].max


def at_noon(service: Service) -> Service:
    set_clock(service, lambda: NOON)
    return service


async def test_each_platform_has_its_price_at_its_hour_and_the_night_is_a_hint(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=PLATFORMS, prices=PRICES, loop=False) as service:
        answer = await ask(at_noon(service), time="1h")
        assert [first(answer, name)[1] for name in ("cheap", "dear", "queue")] == [2, 8, 1]
        [hint] = [reason for reason in answer.reasons if reason.kind == HINT]
        assert hint.message == "From 2026-11-17 19:00 UTC on it would cost 50 % less."
        later = await ask(service, time="1h", start=hint.nearest)
        assert first(later, "cheap") == (NOON + timedelta(hours=7), 1)
        assert not [reason for reason in later.reasons if reason.kind == HINT]


async def test_a_limit_that_only_the_night_keeps_to_moves_the_start_there(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms={"cheap": PLATFORMS["cheap"]}, prices=PRICES, loop=False) as service:
        answer = await ask(at_noon(service), time="1h", max_cost=1.2)
        assert first(answer, "cheap") == (NOON + timedelta(hours=7), 1)
        assert all(offer.offer.costs[0].max <= 1.2 for offer in answer.offers)
        refused = await ask(service, time="1h", max_cost=0.5)
        assert (refused.result, refused.reasons[0].kind) == ("NO", "urn:cost-limit")
        by_day = await ask(service, time="1h", max_cost=1.2, start="2026-11-17T13:00:00Z/PT2H")
        assert (by_day.result, by_day.reasons[0].kind) == ("NO", "urn:cost-limit")


async def test_an_extension_into_the_night_costs_what_the_night_does(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms={"cheap": PLATFORMS["cheap"]}, prices=PRICES, loop=False) as service:
        set_clock(service, lambda: NOON + timedelta(hours=6))
        answer = await ask(service, time="1h")
        session = await service.sessions.accept(answer.offers[0].id, ME)
        longer = await service.sessions.extend(session.id, ME, by="1h")
        assert longer.offer.costs[0].max == pytest.approx(3, abs=0.01)


async def test_the_carbon_intensity_is_read_from_a_file_and_a_broken_one_keeps_what_was_known(tmp_path: Path) -> None:
    file = tmp_path / "grid.csv"
    file.write_text("12,100\n")
    prices = {"core_hour_energy": 0.01, "carbon_intensity": str(file)}
    async with serving(tmp_path, platforms={"cheap": PLATFORMS["cheap"]}, prices=prices, loop=False) as service:
        for text in ("12,100\n", "nonsense"):
            file.write_text(text)
            await service.price_book.read(str(file))
            answer = await ask(at_noon(service), time="1h")
            carbon = [cost.max for cost in answer.offers[0].offer.costs if cost.type == CARBON]
            assert carbon == [1.0]


async def test_what_was_used_is_recorded_beside_what_was_estimated(tmp_path: Path) -> None:
    """A session that may run for an hour runs for a moment: each is counted by its own time."""
    prices = {"core_hour_energy": 0.5, "core_hour_carbon": 100}
    async with serving(tmp_path, platforms={"one": {"kind": "memory", "takes": "1s"}}, prices=prices) as service:
        session = await service.sessions.accept((await ask(service, time="1h")).offers[0].id, ME)
        await over(service, session.id)
        [kept], _ = await service.archive.page(ME, ArchiveFilter())
        record = kept.record
        assert (record.energy, record.carbon, record.energy_source) == (0.5, 100, "settings")
        assert record.energy_used is not None
        assert 0 < record.energy_used < 0.1
        assert 0 < (record.carbon_used or 0) < 20


async def test_energy_is_measured_where_the_kernel_counts_it(tmp_path: Path) -> None:
    """A stand-in for the counter, which grows by 3600 J while the session works: it is given its part of them."""
    zone = tmp_path / "powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "energy_uj").write_text("7\n")
    here = {"here": {"kind": "local", "powercap": str(zone.parent)}}
    grow = f"echo 3600000007 > '{zone}/energy_uj'; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"
    async with serving(tmp_path / "home", platforms=here) as service:
        session = await service.sessions.accept((await ask(service, run=["sh", "-c", grow])).offers[0].id, ME)
        ended = await over(service, session.id)
        assert ended.end is not None
        assert ended.end.usage is not None
        assert ended.end.usage.energy_source == "measured"
        assert 0 < ended.end.usage.energy <= 0.001
