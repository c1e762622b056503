"""What a platform offers as booked is a reservation of its own: taken by its session, given up when nobody takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic import Field

from sublet.booking.loop.reservations import UNWRITTEN, ReservationCare
from sublet.booking.model.job import Job
from sublet.booking.model.offer import Answer, Booked
from sublet.booking.model.phases import Phase
from sublet.booking.model.request import Request
from sublet.kernel.errors import LoginNeeded, PlatformRefused
from sublet.platforms.memory.platform import MemoryPlatform
from sublet.service import Service
from tests.contract.services import ME, ask, in_phase, over, reach, serving

pytestmark = pytest.mark.anyio


class ReservingCluster(MemoryPlatform):
    """A queue that others share, whose users reserve nodes in it."""

    made: dict[str, datetime] = Field(default_factory=dict)
    given_up: list[str] = Field(default_factory=list)
    used: list[str] = Field(default_factory=list)
    is_open: bool = True
    key: str = ""  # of every reservation; empty: a new one for each

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        """Each prediction, and the same reserved for an hour later."""
        answer = await super().offers(request, ways, now)
        offers = list(answer.offers)
        for offer in answer.offers:
            key, start = self.key or str(uuid4()), now + timedelta(hours=1)
            self.made[key] = datetime.now(UTC)
            offers.append(replace(offer, start=start, latest_start=start, terms=Booked(key), queue=""))
        return Answer(tuple(offers), answer.reasons)

    async def list_reservations(self) -> Mapping[str, datetime]:
        if not self.is_open:
            raise LoginNeeded(platform=self.name)
        return dict(self.made)

    async def give_up(self, keys: Sequence[str]) -> None:
        for key in keys:
            del self.made[key]
        self.given_up += keys

    async def submit(self, job: Job, key: str) -> str:
        self.used.append(job.reservation)
        return await super().submit(job, key)


def put_cluster(service: Service, **settings: object) -> ReservingCluster:
    usual = {"name": "far", "terms": "predicted", "waits": ("1s", "1s", "1s"), "takes": "2s"}
    cluster = ReservingCluster.model_validate(usual | settings)
    service.platforms.by_name["far"] = cluster
    return cluster


def care_of(service: Service) -> ReservationCare:
    return ReservationCare(service.store, service.platforms, service.now)


async def test_a_reserved_offer_is_booked_and_its_session_takes_the_reservation(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        cluster = put_cluster(service)
        await cluster.open(tmp_path / "far")
        offerset = await ask(service, platform="far")
        [reserved] = [offer for offer in offerset.offers if offer.offer.terms.kind == "booked"]
        assert [reserved.id] == [*cluster.made]
        accepted = await service.sessions.accept(reserved.id, ME)
        assert accepted.start == reserved.offer.start
        await reach(service, reserved.id, in_phase(Phase.RUNNING))
        with pytest.raises(PlatformRefused, match="a reservation there keeps its end"):
            await service.sessions.extend(reserved.id, ME, by="1h")
        await over(service, reserved.id)
        assert cluster.used == [reserved.id]
        await care_of(service).look_after(service.now())
        assert not cluster.made
        assert cluster.given_up == [reserved.id]


async def test_what_nobody_takes_is_given_up_and_what_is_offered_or_waits_is_kept(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False) as service:
        cluster, care = put_cluster(service), care_of(service)
        await cluster.open(tmp_path / "far")
        first = await ask(service, platform="far")
        [key] = cluster.made
        await care.look_after(service.now())
        assert not cluster.given_up
        [other] = [offer.id for offer in first.offers if offer.id != key]
        await service.sessions.accept(other, ME)
        await care.look_after(service.now())
        assert cluster.given_up == [key]
        await ask(service, platform="far")
        [key] = cluster.made
        await service.sessions.accept(key, ME)
        await care.look_after(service.now())
        assert [*cluster.made] == [key]
        [third] = [offer for offer in (await ask(service, platform="far")).offers if offer.offer.reservation]
        await service.sessions.reject(third.id, ME)
        await care.look_after(service.now())
        assert [*cluster.made] == [key]


async def test_a_reservation_of_which_nothing_was_written_is_given_up_after_a_while(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False) as service:
        cluster, care = put_cluster(service, is_open=False), care_of(service)
        now = service.now()
        cluster.made = {"fresh": now, "lost": now - UNWRITTEN}
        await care.look_after(now)
        cluster.is_open = True
        await care.look_after(now)
        assert not cluster.given_up  # it failed just now, and is tried again later
        await care.look_after(now + timedelta(seconds=31))
        assert cluster.given_up == ["lost"]


async def test_a_platform_that_failed_is_tried_again_also_after_the_clock_is_set_back(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False) as service:
        cluster, care = put_cluster(service, is_open=False), care_of(service)
        now = service.now()
        cluster.made = {"lost": now - UNWRITTEN}
        await care.look_after(now + timedelta(days=900))
        cluster.is_open = True
        await care.look_after(now)
        assert cluster.given_up == ["lost"]


async def test_a_reservation_under_a_name_that_no_session_can_have_is_a_fault(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False) as service:
        cluster = put_cluster(service, key="../etc")
        await cluster.open(tmp_path / "far")
        [reason] = (await ask(service, platform="far")).reasons
        assert "names a reservation that can't be a session's id" in reason.message


async def test_a_reservation_outlives_no_phase_that_ends_an_offer(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False) as service:
        cluster = put_cluster(service)
        await cluster.open(tmp_path / "far")
        [offer] = [one for one in (await ask(service, platform="far")).offers if one.offer.reservation]
        cancelled = await service.sessions.cancel(offer.id, ME)
        assert cancelled.phase is Phase.CANCELLED
        await care_of(service).look_after(service.now())
        assert cluster.given_up == [offer.id]


async def test_the_reservation_of_a_session_that_was_deleted_is_given_up_at_once(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False) as service:
        cluster, care = put_cluster(service), care_of(service)
        await cluster.open(tmp_path / "far")
        [offer] = [one for one in (await ask(service, platform="far")).offers if one.offer.reservation]
        await care.look_after(service.now())
        await service.sessions.cancel(offer.id, ME)
        await service.sessions.delete(offer.id, ME)
        await care.look_after(service.now())
        assert cluster.given_up == [offer.id]
